//! Warm trees: per project one checkout of a landed main that is shown read-only below the private layers of CI, gates and
//! review programs.
//!
//! Nothing ever runs in a warm tree, so nothing that a branch brings can reach the next run. One is never changed while it is
//! used: a newer one takes its place, and the older one is removed with its last user.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_adapters::git::checkout::{give_origin, remove_checkout};
use pointsman_adapters::git::layers::WarmTree;
use pointsman_adapters::sandbox::LayeredCheckout;
use pointsman_core::ids::Sha;

use super::Jobs;
use super::run_number;
use crate::daemon::served::Served;

/// When main has moved on by so many files, a newer warm tree is made beside the work.
const OUTDATED: usize = 200;

/// With fewer files a tree is made at once as it is.
const SPARE_FILES: usize = 2_000;

/// The warm tree of a project, if it has one.
#[derive(Default)]
pub(super) struct WarmSlot(Mutex<Option<Arc<Warm>>>);

/// A warm tree in use.
struct Warm {
    tree: WarmTree,
    /// Another one has taken its place.
    is_replaced: AtomicBool,
}

impl Drop for Warm {
    fn drop(&mut self) {
        if self.is_replaced.load(Ordering::SeqCst) {
            remove(self.tree.dir());
        }
    }
}

/// A checkout in layers. Its private layer is removed when this goes.
pub(super) struct Layered {
    pub(super) checkout: LayeredCheckout,
    place: PathBuf,
    _warm: Arc<Warm>,
}

impl Drop for Layered {
    fn drop(&mut self) {
        remove(&self.place);
    }
}

impl Jobs {
    /// A checkout of a commit in layers, to be seen at `dir`. None where a checkout of its own has to do.
    pub(super) fn layered(self: &Arc<Self>, served: &Arc<Served>, sha: &Sha, dir: &Path) -> Option<Layered> {
        if !served.enclosure.has_layers(&served.config) {
            return None;
        }
        let made = self.try_layered(served, sha, dir);
        made.unwrap_or_else(|error| {
            tracing::warn!(error = %format!("{error:#}"), "no layers for a checkout; it is made anew");
            None
        })
    }

    fn try_layered(
        self: &Arc<Self>,
        served: &Arc<Served>,
        sha: &Sha,
        dir: &Path,
    ) -> anyhow::Result<Option<Layered>> {
        let Some(warm) = self.warm(served)? else { return Ok(None) };
        let place = dir.with_extension("layers");
        let layers = warm.tree.layers_for(&served.mirror, sha, &place);
        if layers.is_err() {
            remove(&place);
        }
        let layers = layers?;
        if layers.as_ref().is_none_or(|layers| layers.changed > OUTDATED) {
            let name = format!("warm {}", served.config.name);
            self.submit(name, served, |jobs, served| {
                if let Err(error) = jobs.warm_anew(served) {
                    tracing::warn!(error = %format!("{error:#}"), "no newer warm tree");
                }
            });
        }
        let Some(layers) = layers else { return Ok(None) };
        let checkout = LayeredCheckout { layers, at: dir.to_owned() };
        let layered = Layered { checkout, place, _warm: warm };
        give_origin(&served.mirror, &layered.checkout.layers.upper, &served.primary)?;
        remove_checkout(dir)?;
        fs::create_dir_all(dir)?;
        Ok(Some(layered))
    }

    /// The project's warm tree. The first time it is made, or found where the last daemon left it.
    fn warm(&self, served: &Served) -> anyhow::Result<Option<Arc<Warm>>> {
        let slot = self.warm_slot(served);
        let mut slot = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(warm) = &*slot {
            return Ok(Some(Arc::clone(warm)));
        }
        let found = find(&served.paths.warm());
        let tree = match found {
            Some(tree) => tree,
            None => match served.mirror.remote_head(&served.primary)? {
                Some(main) => make(served, &main)?,
                None => return Ok(None),
            },
        };
        let warm = Arc::new(Warm { tree, is_replaced: AtomicBool::new(false) });
        *slot = Some(Arc::clone(&warm));
        Ok(Some(warm))
    }

    /// Makes a warm tree of today's main and lets it take the place of the one before.
    fn warm_anew(&self, served: &Served) -> anyhow::Result<()> {
        let Some(main) = served.mirror.remote_head(&served.primary)? else { return Ok(()) };
        let slot = self.warm_slot(served);
        let is_there = |warm: &Arc<Warm>| warm.tree.at == main;
        if slot.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(is_there) {
            return Ok(());
        }
        // Not under the lock: runs go on with the older one.
        let tree = make(served, &main)?;
        let warm = Arc::new(Warm { tree, is_replaced: AtomicBool::new(false) });
        let before = slot.0.lock().unwrap_or_else(PoisonError::into_inner).replace(warm);
        if let Some(before) = before {
            before.is_replaced.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Makes the checkout that the next working tree of a task is made of, beside the work. A small project needs none.
    pub(in crate::daemon) fn keep_spare(self: &Arc<Self>, served: &Arc<Served>) {
        self.submit(format!("spare {}", served.config.name), served, |_, served| {
            if let Err(error) = make_spare(served) {
                tracing::warn!(error = %format!("{error:#}"), "no spare tree");
            }
        });
    }

    fn warm_slot(&self, served: &Served) -> Arc<WarmSlot> {
        Arc::clone(self.lock().warm.entry(served.config.name.clone()).or_default())
    }
}

fn make(served: &Served, main: &Sha) -> anyhow::Result<WarmTree> {
    let dir = served.paths.warm().join(run_number().to_string());
    Ok(WarmTree::make(&served.mirror, &dir, main)?)
}

fn make_spare(served: &Served) -> anyhow::Result<()> {
    let place = served.paths.spare();
    let Some(main) = served.mirror.remote_head(&served.primary)? else { return Ok(()) };
    if WarmTree::find(&place).is_some() || served.mirror.file_count(&main, SPARE_FILES)? < SPARE_FILES {
        return Ok(());
    }
    // It is found only when it is finished, and taken with one rename.
    WarmTree::make(&served.mirror, &place, &main)?;
    Ok(())
}

/// The newest finished warm tree. Whatever else is there belongs to nobody any more.
fn find(dir: &Path) -> Option<WarmTree> {
    let entries = fs::read_dir(dir).ok()?;
    let mut places: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    places.sort_unstable();
    let mut newest = None;
    while let Some(place) = places.pop() {
        match WarmTree::find(&place).filter(|_| newest.is_none()) {
            Some(warm) => newest = Some(warm),
            None => remove(&place),
        }
    }
    newest
}

fn remove(dir: &Path) {
    if let Err(error) = remove_checkout(dir) {
        tracing::warn!(dir = %dir.display(), %error, "left a checkout");
    }
}
