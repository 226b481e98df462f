//! Threads that perform effects. Effects of one workflow never run at the same time: the engine hands
//! out the next only when the one before is settled.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::words;
use pointsman_core::workflow::Workflow;
use pointsman_store::Outgoing;

use super::crash::crash_point_of;
use super::effects::{EffectError, EffectPerformer, Redelivery};
use super::inbound::{Inbound, Inbox, ThreadReport};
use super::outcome::{Outcome, PerformEffects};

/// Most effects wait for git, tmux or a disk, not for a processor.
const WORKERS: usize = 8;

/// Something for a worker.
pub(crate) enum Work {
    /// An effect, and the workflow that ordered it, as it is.
    Effect(Box<Outgoing>, Workflow),
    /// A message that nobody acknowledged.
    Redelivery(Box<Redelivery>),
}

/// The way to the workers. They end when this is dropped.
pub(crate) struct Workers {
    sender: Sender<Work>,
}

impl Workers {
    /// Starts the threads.
    pub(crate) fn start(world: &Arc<EffectPerformer>, inbox: &Inbox) -> std::io::Result<Self> {
        let (sender, receiver) = channel::<Work>();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..WORKERS {
            let (world, inbox, receiver) = (Arc::clone(world), inbox.clone(), Arc::clone(&receiver));
            std::thread::Builder::new()
                .name("effects".to_owned())
                .spawn(move || work(&world, &inbox, &receiver))?;
        }
        Ok(Self { sender })
    }

    /// Hands work to the next free worker.
    pub(crate) fn give(&self, work: Work) {
        // Only fails if all workers are gone, which they never are while this value lives.
        let _ = self.sender.send(work);
    }
}

fn work(world: &Arc<EffectPerformer>, inbox: &Inbox, receiver: &Mutex<Receiver<Work>>) {
    loop {
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Err(_) => return,
            Ok(Work::Effect(outgoing, owner)) if world.takes_long(&outgoing) => {
                let (world, answers) = (Arc::clone(world), inbox.clone());
                let (effect, late) = (outgoing.clone(), inbox.clone());
                let spawned = std::thread::Builder::new()
                    .name("long effect".to_owned())
                    .spawn(move || perform(&world, &answers, outgoing, &owner));
                if let Err(error) = spawned {
                    let outcome = Outcome::Later { error: error.to_string() };
                    late.send(Inbound::Performed { outgoing: effect, outcome });
                }
            }
            Ok(Work::Effect(outgoing, owner)) => perform(world, inbox, outgoing, &owner),
            Ok(Work::Redelivery(again)) => {
                let became = catch_unwind(AssertUnwindSafe(|| world.deliver_again(&again)));
                let became =
                    became.unwrap_or_else(|_| Err(EffectError::later(words::daemon::process::panicked())));
                let became = became.map_err(|trouble| {
                    let error = trouble.into_error();
                    tracing::info!(message = again.row.id.0, error = %error, "not given again yet");
                });
                let message = Box::new(again.row);
                inbox.report(ThreadReport::Redelivered { message, became: became.ok() });
            }
        }
    }
}

fn perform(world: &EffectPerformer, inbox: &Inbox, outgoing: Box<Outgoing>, owner: &Workflow) {
    crash_point_of("before", outgoing.effect.kind());
    let performed = catch_unwind(AssertUnwindSafe(|| world.perform(&outgoing, owner)));
    let outcome =
        performed.unwrap_or_else(|_| Outcome::Never { error: words::daemon::process::panicked().to_owned() });
    crash_point_of("after", outgoing.effect.kind());
    inbox.send(Inbound::Performed { outgoing, outcome });
}
