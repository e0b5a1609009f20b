//! Which cluster is contacted, and which never is.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{Reaper, reaper, transcripts::plays};

/// A kubeconfig with the contexts `prod` (current) and `dev`, line by line.
pub fn kubeconfig(address: SocketAddr, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\n\
         clusters:\n- name: c\n  cluster:\n    server: http://{address}\n\
         users:\n- name: u\n  user:\n    {user}\n\
         contexts:\n- name: prod\n  context: {{cluster: c, user: u}}\n- name: dev\n  context: {{cluster: c, user: u}}\n"
    )
}

#[test]
fn a_broken_kubeconfig_never_falls_back_to_another_cluster() {
    plays("golden/wrong-kubeconfig.txt");
}

#[test]
fn the_named_cluster_is_the_one_that_is_asked() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    thread::spawn(move || {
        for connection in listener.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
            drop(connection);
        }
    });
    let asks = |name: &str, run: Reaper| {
        run.run().exits(1).never_prints("MARKER");
        assert!(
            asked.swap(0, Ordering::SeqCst) > 0,
            "{name}: the cluster was not asked"
        );
    };
    let with_file = |name: &str| {
        let run = reaper(&["--dry-run"]);
        let path = run.file(name, &kubeconfig(address, "token: MARKER"));
        (run, path)
    };

    let (mut run, path) = with_file("config");
    run.command.args(["--kubeconfig", &path]);
    asks("--kubeconfig", run.env("KUBECONFIG", "/nowhere/config"));

    // Like kubectl, the program skips files of the list that do not exist.
    let (run, path) = with_file("config");
    asks(
        "KUBECONFIG",
        run.env("KUBECONFIG", &format!("/nowhere/config:{path}")),
    );

    let (mut run, path) = with_file("config");
    run.command.args(["--context", "dev"]);
    asks("--context", run.env("KUBECONFIG", &path));

    let (run, _) = with_file(".kube/config");
    asks("the default kubeconfig", run);
}
