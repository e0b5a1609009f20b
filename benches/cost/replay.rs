//! The cost of the requests alone: curl repeats the requests of pod-reaper over one connection.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use serde_json::Value;

use crate::{
    support::{
        ControlPlane,
        proxy::{Proxy, Seen},
    },
    tunnel::Tunnel,
};

/// The requests of one run.
pub struct Replay {
    requests: Vec<Seen>,
}

impl Replay {
    /// Records the requests of a run of `binary` on the cluster.
    pub fn record(cluster: &'static ControlPlane, binary: &str, options: &[&str]) -> Self {
        let proxy = Proxy::start(cluster, |_| {});
        let output = Command::new(binary)
            .args(options)
            .arg("--kubeconfig")
            .arg(&proxy.kubeconfig)
            .output()
            .expect("the program starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self {
            requests: proxy.seen(),
        }
    }

    /// Writes the requests as a file for `curl --config`, through `tunnel`, for `pods`: UID and version by path.
    pub fn write(
        &self,
        tunnel: &Tunnel,
        cluster: &ControlPlane,
        pods: &BTreeMap<String, (Value, Value)>,
    ) -> PathBuf {
        let mut config = String::new();
        for Seen {
            method,
            path,
            accept,
            body,
            ..
        } in &self.requests
        {
            if !config.is_empty() {
                config += "next\n";
            }
            // Each `next` resets all options. The user agent is set because the server indents its responses to curl.
            config += &format!(
                "url = \"{}{path}\"\nrequest = {method}\nsilent\nshow-error\nfail\ninsecure\nhttp1.1\noutput = /dev/null\ngloboff\nuser-agent = replay/1\n\
                 header = \"Accept: {accept}\"\nheader = \"Authorization: Bearer {}\"\n",
                tunnel.url, cluster.token
            );
            if !body.is_null() {
                let mut body = body.clone();
                // The body of an Event is sent unchanged.
                if let Some((uid, version)) = pods.get(path) {
                    body["preconditions"]["uid"] = uid.clone();
                    body["preconditions"]["resourceVersion"] = version.clone();
                }
                let body = body.to_string().replace('\\', "\\\\").replace('"', "\\\"");
                config +=
                    &format!("header = \"Content-Type: application/json\"\ndata = \"{body}\"\n");
            }
        }
        let file = cluster.dir.join("replay.curl");
        std::fs::write(&file, config).expect("the folder is ours");
        file
    }
}
