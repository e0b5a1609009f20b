//! Which cluster is contacted, and which never is.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::reaper;

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
fn the_named_cluster_is_the_one_that_is_asked() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    thread::spawn(move || {
        for _connection in listener.incoming() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    // Like kubectl, the program skips files of the list that do not exist.
    for (file, args, variable) in [
        ("config", "--kubeconfig FILE", "/nowhere/config"),
        ("config", "", "/nowhere/config:FILE"),
        ("config", "--context dev", "FILE"),
        (".kube/config", "", ""),
    ] {
        let mut run = reaper(&["--dry-run"]);
        let path = run.file(file, &kubeconfig(address, "token: MARKER"));
        let args = args.replace("FILE", &path);
        run.command.args(args.split_whitespace());
        let run = run.env("KUBECONFIG", &variable.replace("FILE", &path));
        let ended = run.run().exits(1);
        assert!(!ended.err.contains("MARKER"), "{}", ended.err);
        let times = asked.swap(0, Ordering::SeqCst);
        assert!(times > 0, "the cluster was not asked: {args} {variable}");
    }
}
