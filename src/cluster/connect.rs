//! Decides which cluster to use, with whose credentials, and sets up a client for it.
//!
//! If the user names a cluster, the run uses that cluster or none. So `Config::infer` does not fit:
//! if a kubeconfig is broken, it falls back to the in-cluster account, and it obeys debugging
//! variables.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use http::{Uri, uri::Authority};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use itertools::Itertools as _;
use kube::{
    Client, Config,
    client::{Body, ConfigExt as _},
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use tower::{BoxError, ServiceBuilder};

use super::{Cluster, request::REQUEST_TIME_LIMIT};
use crate::{
    exit::{CouldNotRun, Result},
    selector::Target,
    stop::Stop,
    words::{Foreign, prefixed, sanitize},
};

/// The longest wait for a client. A credential plugin may run in this time.
const CONNECT_TIME_LIMIT: Duration = Duration::from_secs(30);

impl Cluster {
    /// Loads the credentials and sets up a client. Sends nothing to the cluster yet.
    pub async fn connect(target: &Target, stop: &Stop) -> Result<Self> {
        let (config, context) = config(target).await?;
        let server = &config.cluster_url;
        let host = server.host().unwrap_or_default();
        let called = context
            .map(Foreign::<60>::from)
            .map_or("the cluster".to_owned(), |name| format!("context {name}"));
        let name = format!("{called} ({host})");
        let address = format!("{called} at {server}");
        let has_plugin = config.auth_info.exec.is_some();
        // Setting up a client may run a credential plugin,
        // which blocks the thread and has no time limit.
        let client = tokio::task::spawn_blocking(move || client(config));
        let why = match tokio::time::timeout(stop.at_most(CONNECT_TIME_LIMIT), client).await {
            Ok(Ok(Ok(client))) => {
                return Ok(Self {
                    name,
                    address,
                    ..Self::new(client, stop.clone())
                });
            }
            // A plugin's output and environment may hold secrets, so neither is repeated.
            Ok(Ok(Err(_))) if has_plugin => {
                "its credential plugin failed, or was not found".to_owned()
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) => "its token or certificate is damaged".to_owned(),
            Err(_) => "its credential plugin did not respond in time".to_owned(),
        };
        let why = format!(
            "{address}: {why}; log in again, or repair the kubeconfig, then try `kubectl get nodes`"
        );
        Err(if has_plugin {
            CouldNotRun::Source(why)
        } else {
            CouldNotRun::Usage(why)
        })
    }

    /// Checks that the kubeconfig and the context of `target` exist. Reads only files.
    pub async fn check(target: &Target) -> Result<()> {
        config(target).await.map(drop)
    }

    /// Reports whether a run on `target` would use the pod's own ServiceAccount.
    pub fn by_own_account(target: &Target) -> bool {
        target.context.is_none() && kubeconfigs(target).is_none()
    }
}

/// Sets up a client as kube's builder does, with two differences. First, no request is repeated for
/// minutes after 429, 503 or 504, not even a delete; `Cluster::fetch` repeats reads, and `Turn::delete` a
/// write, each time after the node was read again. Second, `TCP_NODELAY` is set, for which kube has
/// no option. Without this option, TCP holds back the first request of a connection until the
/// server has acknowledged the end of the TLS handshake, which may take 40 ms: a run of one request
/// took 2.4 times as long with kube's builder.
fn client(config: Config) -> kube::Result<Client> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(REQUEST_TIME_LIMIT));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    // A token that is sent without TLS can be read on the way. kubectl sends none either.
    let is_tls = config.cluster_url.scheme_str() == Some("https");
    let auth = is_tls.then(|| config.auth_layer()).transpose()?.flatten();
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(auth)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Client::new(service, config.default_namespace))
}

/// Returns the paths of the kubeconfigs to use, and their source: `--kubeconfig`, or else
/// `KUBECONFIG`, or else `~/.kube/config`. `None` if neither of the first two is set and the third
/// does not exist: the run then uses the pod's ServiceAccount.
fn kubeconfigs(target: &Target) -> Option<(&'static str, Vec<PathBuf>)> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = &target.kubeconfig {
        return Some(("--kubeconfig", vec![path.clone()]));
    }
    if let Some(paths) = set("KUBECONFIG") {
        return Some(("KUBECONFIG", env::split_paths(&paths).collect()));
    }
    let default = Path::new(&set("HOME")?).join(".kube").join("config");
    // A file whose existence cannot be checked is treated as existing. Reading it will then fail,
    // which is better than acting with other credentials.
    default
        .try_exists()
        .unwrap_or(true)
        .then(|| ("kubeconfig", vec![default]))
}

/// Loads the credentials, and returns the name of their context; the pod's ServiceAccount has none.
async fn config(target: &Target) -> Result<(Config, Option<String>)> {
    let Some((by, paths)) = kubeconfigs(target) else {
        if let Some(context) = &target.context {
            return Err(CouldNotRun::Usage(format!(
                "--context {context}: there is no kubeconfig to find it in; name one with --kubeconfig"
            )));
        }
        let why = "no cluster to connect to: there is no kubeconfig, and this is not a pod with a ServiceAccount token; \
                   name one with --kubeconfig, or audit a saved state with --snapshot";
        let own = Config::incluster().map_err(|_| CouldNotRun::Source(why.to_owned()))?;
        return Ok((own, None));
    };
    let wrong = |why: String| CouldNotRun::Usage(format!("{by} {why}"));
    let kubeconfig = read(&paths).map_err(wrong)?;
    let context = target
        .context
        .clone()
        .or_else(|| kubeconfig.current_context.clone());
    let named = prefixed(": context ", context.clone().map(Foreign::<60>::from));
    let named = format!("{}{named}", list(&paths));
    let wrong = |why: &str| wrong(format!("{named}: {why}; repair it, or name another"));
    let cluster = kubeconfig
        .contexts
        .iter()
        .find(|it| Some(&it.name) == context.as_ref())
        .and_then(|it| it.context.as_ref())
        .map(|it| &it.cluster);
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|it| Some(&it.name) == cluster);
    let proxy = cluster.and_then(|it| it.cluster.as_ref()?.proxy_url.clone());
    if proxy.is_some_and(|it| !it.is_empty()) {
        return Err(wrong("a proxy-url is not supported"));
    }
    let options = KubeConfigOptions {
        context: context.clone(),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    // kube's error names a file or an entry that is missing or damaged, and repeats no secret.
    let mut config = config.map_err(|error| wrong(&sanitize(&error.to_string())))?;
    if !is_address(&config.cluster_url) {
        return Err(wrong("its server is no http or https URL without a login"));
    }
    // kube would use a proxy of the environment, but does not know which hosts are exempt from the
    // proxy.
    config.proxy_url = None;
    Ok((config, context))
}

/// Reports whether requests can be sent to `server`, which kube would panic at otherwise, and
/// the address can be shown because it holds no login.
fn is_address(server: &Uri) -> bool {
    let known = matches!(server.scheme_str(), Some("http" | "https"));
    // If the port is no number, `host` leaves it out and `port` is `None`.
    let whole = |it: &Authority| it.port().is_some() || it.as_str() == it.host();
    known
        && server
            .authority()
            .is_some_and(|it| whole(it) && !it.as_str().contains('@'))
}

/// Reads and merges the kubeconfigs. Like kubectl, it
/// skips files that do not exist, as long as one does.
fn read(paths: &[PathBuf]) -> Result<Kubeconfig, String> {
    let mut merged = None;
    for path in paths {
        // A file that may exist is not skipped, because the next file may name another cluster.
        if path.try_exists().is_ok_and(|exists| !exists) {
            continue;
        }
        let both = Kubeconfig::read_from(path)
            .and_then(|next| Kubeconfig::merge(merged.unwrap_or_default(), next));
        merged = Some(both.map_err(|error| {
            let why = match error {
                // The message has the text at that place, which may be a token.
                KubeconfigError::Parse(_) => "it is not a kubeconfig".to_owned(),
                error => error.to_string(),
            };
            format!("{}: {why}; repair it, or name another", path.display())
        })?);
    }
    merged.ok_or_else(|| format!("{}: there is no such file; check the path", list(paths)))
}

fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .join(", ")
}
