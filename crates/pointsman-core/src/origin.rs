//! The server and repository that a remote of git means, as far as its address tells.

use crate::config::ForgeKind;

/// A repository on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What kind of server; none if the name tells nothing.
    pub kind: Option<ForgeKind>,
    /// Its address for people and for the API.
    pub url: String,
    pub repo: String,
}

impl Origin {
    /// Reads the address of a remote. Nothing for a path, and for what names no owner and repository. A user name or a
    /// password in it is left out.
    pub fn parse(address: &str) -> Option<Self> {
        if address.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return None;
        }
        let (scheme, host, path) = match address.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_once('/')?;
                (scheme, host, path)
            }
            // As ssh has it: user@host:path
            None => {
                let (host, path) = address.split_once(':')?;
                host.contains('@').then_some(())?;
                ("ssh", host, path)
            }
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
        let url = match scheme {
            "https" | "http" => format!("{scheme}://{host}"),
            // A port of ssh says nothing about that of the web.
            "ssh" | "git+ssh" | "git" => {
                format!("https://{}", host.split_once(':').map_or(host.as_str(), |(host, _)| host))
            }
            _ => return None,
        };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let kind = kind_of(&host);
        if path.contains('/') && kind.is_some_and(|kind| kind.capabilities().groups) {
            return Some(Self { kind, url, repo: path.to_owned() });
        }
        let (rest, name) = path.rsplit_once('/')?;
        let (above, owner) =
            rest.rsplit_once('/').map_or((None, rest), |(above, owner)| (Some(above), owner));
        if host.is_empty() || owner.is_empty() || name.is_empty() {
            return None;
        }
        let url = above.map_or(url.clone(), |above| format!("{url}/{above}"));
        Some(Self { kind, url, repo: format!("{owner}/{name}") })
    }
}

fn kind_of(host: &str) -> Option<ForgeKind> {
    ForgeKind::of_host(host.split_once(':').map_or(host, |(host, _)| host))
}

#[cfg(test)]
mod tests {
    use super::Origin;
    use crate::config::ForgeKind;

    #[test]
    fn addresses_as_people_have_them() {
        let github = Some(ForgeKind::Github);
        let forgejo = Some(ForgeKind::Forgejo);
        let gitlab = Some(ForgeKind::Gitlab);
        for (address, kind, url, repo) in [
            ("https://github.com/ann/shop", github, "https://github.com", "ann/shop"),
            ("https://github.com/ann/shop.git/", github, "https://github.com", "ann/shop"),
            ("git@github.com:ann/shop.git", github, "https://github.com", "ann/shop"),
            ("ssh://git@codeberg.org/ann/shop.git", forgejo, "https://codeberg.org", "ann/shop"),
            ("ssh://git@git.example.org:2222/ann/shop.git", None, "https://git.example.org", "ann/shop"),
            ("https://ann:secret@Git.Example.org:3000/a/b", None, "https://git.example.org:3000", "a/b"),
            ("https://example.org/forge/a/b.git", None, "https://example.org/forge", "a/b"),
            ("https://github.example.org/a/b", github, "https://github.example.org", "a/b"),
            ("http://gitea.local/a/b", forgejo, "http://gitea.local", "a/b"),
            ("git@gitlab.com:acme/apps/shop.git", gitlab, "https://gitlab.com", "acme/apps/shop"),
            ("https://gitlab.example.org/acme/shop", gitlab, "https://gitlab.example.org", "acme/shop"),
        ] {
            let origin = Origin { kind, url: url.to_owned(), repo: repo.to_owned() };
            assert_eq!(Origin::parse(address), Some(origin), "{address}");
        }
    }

    #[test]
    fn what_is_no_repository_on_a_server() {
        for address in [
            "",
            "/srv/shop.git",
            "../shop",
            "file:///srv/a/b",
            "https://github.com/ann",
            "https:///a/b",
            "C:\\x\\y",
            "git@host:",
            "https://h/a b/c",
            "git@h:a",
        ] {
            assert_eq!(Origin::parse(address), None, "{address}");
        }
    }
}
