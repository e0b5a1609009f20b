//! Which cluster, and with whose credentials.
//!
//! `Config::infer` is not used: it goes on to the in-cluster account when a kubeconfig is broken, and obeys debugging
//! variables. A cluster that the user named is the one that is used, or none is.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use super::{Cluster, request::REQUEST_LIMIT};
use crate::exit::{CouldNotRun, Result};
use crate::selector::{NodeSelectors, Target};
use crate::stop::Stop;

/// Longest wait for a client, in which a credential plugin may run.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

impl Cluster {
    /// Loads the credentials and sets up a client. Nothing is sent yet.
    pub async fn connect(target: &Target, stop: &Stop, selectors: &NodeSelectors) -> Result<Self> {
        let (config, place) = config(target).await?;
        // Setting up a client may run a credential plugin, which blocks the thread and knows no time limit; its error
        // holds the plugin's output and environment, so none of it is repeated.
        let client = tokio::task::spawn_blocking(move || client(config));
        let why = match tokio::time::timeout(stop.at_most(CONNECT_LIMIT), client).await {
            Ok(Ok(Ok(client))) => {
                return Ok(Self {
                    place,
                    ..Self::new(client, stop.clone(), selectors.clone())
                });
            }
            Ok(Ok(Err(error))) => {
                format!(
                    "the credentials in the kubeconfig cannot be used ({})",
                    kind(&error)
                )
            }
            Ok(Err(_)) => "setting up the client by the kubeconfig failed".to_owned(),
            Err(_) => {
                let limit = CONNECT_LIMIT.as_secs();
                format!("the credential plugin of the kubeconfig did not answer within {limit} s")
            }
        };
        Err(CouldNotRun::Source(format!(
            "{why}; try `kubectl get nodes` with the same kubeconfig"
        )))
    }
}

/// Makes a client as kube does, with two differences. kube repeats a request, a delete too, for minutes after 429, 503 or
/// 504; here only reads are repeated, by `Cluster::get`. And `TCP_NODELAY` is set, for which kube has no option: without it,
/// TCP keeps the first request of a connection back until the other side has acknowledged the end of the TLS handshake,
/// which may take 40 ms.
fn client(config: Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        // kube is built without proxies here. Its error says so.
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(REQUEST_LIMIT));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Client::new(service, config.default_namespace))
}

/// The kind of a client error, without its text.
fn kind(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Auth(_) => "authentication",
        kube::Error::RustlsTls(_) => "TLS",
        _ => "client",
    }
}

/// Chooses as kubectl does: `--kubeconfig`, `KUBECONFIG`, `~/.kube/config`, the pod's ServiceAccount. Only the last is a
/// fallback, taken when none of the others exists and no context was named. Also gives what messages call the cluster.
async fn config(target: &Target) -> Result<(Config, String)> {
    // `named` is what messages call the file.
    let (kubeconfig, named) = if let Some(path) = &target.kubeconfig {
        read(path, "--kubeconfig")?
    } else if let Some(paths) = env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        let list = read_list(&env::split_paths(&paths).collect::<Vec<_>>())?;
        (list, format!("KUBECONFIG {}", paths.display()))
    } else if let Some(path) = default_path().filter(|path| path.exists()) {
        read(&path, "kubeconfig")?
    } else if let Some(context) = &target.context {
        return Err(CouldNotRun::Usage(format!(
            "--context {context}: there is no kubeconfig to find it in; name one with --kubeconfig"
        )));
    } else {
        let own = |config: Config| {
            let host = config.cluster_url.host().unwrap_or_default().to_owned();
            (config, format!("the cluster at {host}"))
        };
        let why = "no cluster to talk to: there is no kubeconfig and this is not a pod with a ServiceAccount token; \
                   name one with --kubeconfig, or audit a saved state with --snapshot";
        return Config::incluster()
            .map(own)
            .map_err(|_| CouldNotRun::Source(why.to_owned()));
    };
    let proxy = proxy(&kubeconfig, target.context.as_ref());
    let options = KubeConfigOptions {
        context: target.context.clone(),
        ..KubeConfigOptions::default()
    };
    let context = target
        .context
        .clone()
        .or_else(|| kubeconfig.current_context.clone())
        .unwrap_or_default();
    let contexts = kubeconfig
        .contexts
        .iter()
        .map(|context| context.name.clone())
        .collect::<Vec<_>>();
    let contexts = if contexts.is_empty() {
        "none".to_owned()
    } else {
        contexts.join(", ")
    };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| match error {
            KubeconfigError::LoadContext(name) => CouldNotRun::Usage(format!(
                "--context {name}: {named} has no such context; it has {contexts}"
            )),
            KubeconfigError::CurrentContextNotSet => CouldNotRun::Usage(format!(
                "{named} has no current context; choose one with --context; it has {contexts}"
            )),
            // The others name a missing entry, file or URL; none repeats a secret.
            other => CouldNotRun::Usage(format!("{named} cannot be used: {other}")),
        })?;
    // kube takes a URL without its scheme, and panics at the first request.
    if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none() {
        return Err(CouldNotRun::Usage(format!(
            "{named}: the cluster's server is not a URL; write one such as https://10.0.0.1:6443"
        )));
    }
    // kube would take a proxy from the environment as well, but cannot know which hosts it must not be used for.
    config.proxy_url = proxy;
    let place = format!(
        "context {context} ({})",
        config.cluster_url.host().unwrap_or_default()
    );
    Ok((config, place))
}

/// Reads a kubeconfig. Also gives what messages call it.
fn read(path: &Path, by: &str) -> Result<(Kubeconfig, String)> {
    let named = format!("{by} {}", path.display());
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| {
        let why = match &error {
            KubeconfigError::ReadConfig(error, _) => error.to_string(),
            // Names only the place: the text there may be a token.
            KubeconfigError::Parse(error) if let Some(at) = error.location() => {
                format!(
                    "not a kubeconfig, at line {}, column {}",
                    at.line(),
                    at.column()
                )
            }
            _ => "not a kubeconfig".to_owned(),
        };
        CouldNotRun::Usage(format!("{named}: {why}"))
    })?;
    Ok((kubeconfig, named))
}

/// Like kubectl, passes over files of the list that do not exist, as long as one does.
fn read_list(paths: &[PathBuf]) -> Result<Kubeconfig> {
    let mut merged = None;
    for path in paths {
        // A file that may exist is not passed over: the next one may name another cluster.
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                return Err(CouldNotRun::Usage(format!(
                    "KUBECONFIG {}: {error}",
                    path.display()
                )));
            }
        }
        let (next, named) = read(path, "KUBECONFIG")?;
        let first = merged.unwrap_or_default();
        let both = Kubeconfig::merge(first, next);
        merged = Some(both.map_err(|error| CouldNotRun::Usage(format!("{named}: {error}")))?);
    }
    merged.ok_or_else(|| {
        let names = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join(", ");
        let what = "no such file; name one that exists, or unset the variable";
        CouldNotRun::Usage(format!("KUBECONFIG {names}: {what}"))
    })
}

fn default_path() -> Option<PathBuf> {
    let home = env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(Path::new(&home).join(".kube").join("config"))
}

/// The proxy that the chosen cluster's entry names.
fn proxy(kubeconfig: &Kubeconfig, context: Option<&String>) -> Option<http::Uri> {
    let name = context.or(kubeconfig.current_context.as_ref())?;
    let context = kubeconfig
        .contexts
        .iter()
        .find(|named| named.name == *name)?
        .context
        .as_ref()?;
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|named| named.name == context.cluster)?
        .cluster
        .as_ref()?;
    cluster
        .proxy_url
        .as_ref()
        .filter(|url| !url.is_empty())?
        .parse()
        .ok()
}
