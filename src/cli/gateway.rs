//! The value of `--push-gateway`, a URL that may contain a password.

use std::{fmt, str::FromStr};

use http::Uri;
use percent_encoding::percent_decode_str;

use crate::cluster::is_address;

/// The address of a Pushgateway. `Debug` shows no login.
#[derive(Clone, PartialEq, Eq)]
pub struct PushGateway {
    /// The URL without the login.
    pub url: Uri,
    pub login: Option<Login>,
}

/// A login of HTTP basic authentication.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    /// The password, which is never shown.
    pub password: String,
}

impl FromStr for PushGateway {
    type Err = &'static str;

    // The text may contain a password, so the error repeats no part of the text.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "it is not the URL of a Pushgateway; write one such as http://pushgateway.monitoring:9091, with / ? # and @ \
                     in a password as %2F %3F %23 and %40";
        let uri = text.trim().parse::<Uri>().map_err(|_| wrong)?;
        // Such a character in a password ends the URL's authority too early. The rest of the
        // password would then be treated as host, port or path, and be shown.
        let whole = !text.contains(['#', '?']) && !uri.path().contains('@');
        let authority = uri.authority().filter(|_| whole).ok_or(wrong)?.as_str();
        let split = authority.rsplit_once('@');
        let (login, host) = split.map_or((None, authority), |(login, host)| (Some(login), host));
        let plain = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let login = login.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            Login {
                user: plain(user),
                password: plain(password),
            }
        });
        let mut parts = uri.clone().into_parts();
        parts.authority = Some(host.parse().map_err(|_| wrong)?);
        let url = Uri::from_parts(parts).map_err(|_| wrong)?;
        is_address(&url).then_some(Self { url, login }).ok_or(wrong)
    }
}

impl fmt::Debug for PushGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_used_and_never_shown() {
        let gateway = "https://reaper:s%40cret@gw.example:9091/push"
            .parse::<PushGateway>()
            .unwrap();
        assert_eq!(gateway.login.as_ref().unwrap().user, "reaper");
        assert_eq!(gateway.login.as_ref().unwrap().password, "s@cret");
        assert_eq!(
            format!("{} {gateway:?}", gateway.url),
            "https://gw.example:9091/push https://gw.example:9091/push"
        );
    }

    #[test]
    fn what_is_no_url_is_refused_without_repeating_it() {
        for text in [
            "",
            "gw:9091",
            "ftp://u:secret@gw",
            "http://",
            "http://u:secret@gw/?a=b",
            "http://u:sec ret@gw",
            "http://u:sec/ret@gw:9091",
            "http://u:/sec@gw",
            "http://12:3/sec@gw",
            "http://u:1#sec@gw",
            "http://u:1?sec@gw",
            "http://gw:sec",
            "/x",
        ] {
            let error = text.parse::<PushGateway>().expect_err(text);
            assert!(
                error.contains("http://pushgateway.monitoring:9091") && !error.contains("sec"),
                "{text}: {error}"
            );
        }
    }
}
