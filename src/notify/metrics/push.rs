//! Pushes the metrics to a Pushgateway.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{Method, Request, header, uri::Scheme};
use kube::{Client, Config, client::Body, config::AuthInfo};

use super::Exposition;
use crate::{
    cli::{Login, PushGateway},
    cluster::{USER_AGENT, root},
};

/// Pushes `exposition` to `gateway`. The request is not repeated, and no redirect is followed.
pub async fn push(
    gateway: &PushGateway,
    job: &str,
    cluster: Option<&str>,
    exposition: &Exposition,
) -> Result<(), String> {
    // PUT replaces the whole group. POST replaces only the metrics that it contains.
    let method = if exposition.whole {
        Method::PUT
    } else {
        Method::POST
    };
    let request = Request::builder()
        .method(method)
        .uri(group(job, cluster))
        .header(header::USER_AGENT, USER_AGENT)
        .header(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )
        .body(Body::from(exposition.text.clone().into_bytes()))
        .map_err(|error| error.to_string())?;
    let response = client(gateway)?
        .send(request)
        .await
        .map_err(|error| root(&error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let hint = if status.is_redirection() {
        ", and redirects are not followed"
    } else {
        ""
    };
    Err(format!("it responded with {status}{hint}"))
}

/// Makes a client of the same kind as the client of the API server, but with only this URL and its
/// login.
fn client(gateway: &PushGateway) -> Result<Client, String> {
    let mut config = Config::new(gateway.url.clone());
    config.default_retry = false;
    if gateway.url.scheme() == Some(&Scheme::HTTP) {
        // HTTP needs no root certificates. Without this setting, the client would look for the
        // system's certificates, and fail in our image, which has none.
        config.root_cert = Some(Vec::new());
    }
    if let Some(Login { user, password }) = gateway.login.clone() {
        config.auth_info = AuthInfo {
            username: Some(user),
            password: Some(password.into()),
            ..AuthInfo::default()
        };
    }
    Client::try_from(config).map_err(|error| root(&error))
}

/// Returns the path of the metrics' group. The cluster's name is encoded, because it may contain a
/// slash.
fn group(job: &str, cluster: Option<&str>) -> String {
    let cluster =
        cluster.map(|name| format!("/cluster@base64/{}", BASE64_URL_SAFE_NO_PAD.encode(name)));
    format!("/metrics/job/{job}{}", cluster.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cluster_has_a_group_of_its_own() {
        assert_eq!(group("pod-reaper", None), "/metrics/job/pod-reaper");
        assert_eq!(
            group("pod-reaper", Some("prod-eu")),
            "/metrics/job/pod-reaper/cluster@base64/cHJvZC1ldQ"
        );
        assert_eq!(
            group("pod-reaper", Some("eu/prod?ü")),
            "/metrics/job/pod-reaper/cluster@base64/ZXUvcHJvZD_DvA"
        );
    }
}
