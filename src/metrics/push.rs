//! A Pushgateway: where it is, and how numbers are handed to it.

use std::{fmt, str::FromStr};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{
    Method, Request, Uri, header,
    uri::{Authority, Scheme},
};
use kube::{Client, Config, client::Body, config::AuthInfo};
use percent_encoding::percent_decode_str;

use super::Page;
use crate::cluster::{USER_AGENT, root};

/// `--push-gateway`. It is shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct PushGateway {
    url: Uri,
    login: Option<Login>,
}

#[derive(Clone, PartialEq, Eq)]
struct Login {
    user: String,
    password: String,
}

impl FromStr for PushGateway {
    type Err = &'static str;

    // The text may hold a password, so no error repeats any of it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "it is no URL of a Pushgateway; write one such as http://pushgateway.monitoring:9091, with / ? # and @ \
                     in a password as %2F %3F %23 and %40";
        let uri = text.trim().parse::<Uri>().map_err(|_| wrong)?;
        let known = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme());
        // Such a sign in a password ends the authority before its time: the rest of the password, or all of it, would
        // then count as host, port or path, and be shown.
        let whole = !text.contains(['#', '?']) && !uri.path().contains('@');
        let authority = uri.authority().filter(|_| known && whole).ok_or(wrong)?.as_str();
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, authority),
        };
        let plain = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let login = login.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            Login { user: plain(user), password: plain(password) }
        });
        let mut parts = uri.clone().into_parts();
        let host = host.parse::<Authority>().map_err(|_| wrong)?;
        if host.port_u16().is_none() && host.as_str() != host.host() {
            return Err(wrong);
        }
        parts.authority = Some(host);
        Ok(Self { url: Uri::from_parts(parts).map_err(|_| wrong)?, login })
    }
}

impl fmt::Display for PushGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl fmt::Debug for PushGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl PushGateway {
    /// Hands `page` over. Nothing is repeated, and no redirect followed.
    pub(super) async fn push(&self, cluster: Option<&str>, page: &Page) -> Result<(), String> {
        // PUT takes the place of the whole group, POST only that of the families in it.
        let method = if page.whole { Method::PUT } else { Method::POST };
        let request = Request::builder()
            .method(method)
            .uri(group(cluster))
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")
            .body(Body::from(page.to_string().into_bytes()))
            .map_err(|error| error.to_string())?;
        let response = self.client()?.send(request).await.map_err(|error| root(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let hint = if status.is_redirection() { ", and redirects are not followed" } else { "" };
        Err(format!("it answered {status}{hint}"))
    }

    /// The client that is used for the API server serves for any: nothing but this URL and its login goes with it.
    fn client(&self) -> Result<Client, String> {
        let mut config = Config::new(self.url.clone());
        config.default_retry = false;
        if self.url.scheme() == Some(&Scheme::HTTP) {
            // None is needed. Left to itself it looks for the system's, and fails where there are none, as in our image.
            config.root_cert = Some(Vec::new());
        }
        if let Some(Login { user, password }) = self.login.clone() {
            config.auth_info =
                AuthInfo { username: Some(user), password: Some(password.into()), ..AuthInfo::default() };
        }
        Client::try_from(config).map_err(|error| root(&error))
    }
}

/// The path of the group that a cluster's series are in. A name may hold a slash, hence the encoding.
fn group(cluster: Option<&str>) -> String {
    let cluster = cluster.map(|name| format!("/cluster@base64/{}", BASE64_URL_SAFE_NO_PAD.encode(name)));
    format!("/metrics/job/pod-reaper{}", cluster.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_used_and_never_shown() {
        let gateway = "https://reaper:s%40cret@gw.example:9091/push".parse::<PushGateway>().unwrap();
        assert_eq!(gateway.login.as_ref().unwrap().user, "reaper");
        assert_eq!(gateway.login.as_ref().unwrap().password, "s@cret");
        assert_eq!(
            format!("{gateway} {gateway:?}"),
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
            let says = text.parse::<PushGateway>().expect_err(text);
            assert!(
                says.contains("http://pushgateway.monitoring:9091") && !says.contains("sec"),
                "{text}: {says}"
            );
        }
    }

    #[test]
    fn each_cluster_has_a_group_of_its_own() {
        assert_eq!(group(None), "/metrics/job/pod-reaper");
        assert_eq!(group(Some("prod-eu")), "/metrics/job/pod-reaper/cluster@base64/cHJvZC1ldQ");
        assert_eq!(group(Some("eu/prod?ü")), "/metrics/job/pod-reaper/cluster@base64/ZXUvcHJvZD_DvA");
    }
}
