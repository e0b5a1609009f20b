//! The program as a plugin of kubectl.

use crate::prelude::*;

/// Runs it through kubectl, as a user does.
#[test]
fn kubectl_runs_it_as_a_plugin() {
    let cluster = six_nodes::after_an_hour();
    let bin = cluster.dir.join("plugins");
    fs::create_dir_all(&bin).unwrap();
    let plugin = bin.join("kubectl-pod_reaper");
    let _ = fs::remove_file(&plugin);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pod-reaper"), plugin).unwrap();
    let pod = format!("{}/{}", six_nodes::LOCAL.0, six_nodes::LOCAL.1);
    let by_name = format!("pod-reaper explain {pod} -o json -n {}", six_nodes::LOCAL.0);
    let mut kubectl = cluster.kubectl_command();
    kubectl.env("PATH", &bin).args(by_name.split(' '));
    let answer = kubectl.output().unwrap();
    let says = String::from_utf8_lossy(&answer.stderr);
    assert_eq!(answer.status.code(), Some(0), "{says}");
    let answer = serde_json::from_slice::<Value>(&answer.stdout).unwrap();
    assert_eq!(answer["rules"].as_array().map(Vec::len), Some(17));
}
