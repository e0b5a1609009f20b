//! Which cluster is contacted, and which never is.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{Forbidden, Reaper, reaper};

/// A kubeconfig with the contexts `here` (current) and `there`.
fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters:\n- name: c\n  cluster: {{server: 'http://{address}'}}\n\
         users:\n- name: u\n  user: {{token: MARKER}}\n\
         contexts:\n- name: here\n  context: {{cluster: c, user: u}}\n- name: there\n  context: {{cluster: c, user: u}}\n"
    )
}

/// Invalid YAML with a token, which must not be printed.
const BROKEN: &str = "apiVersion: v1\nusers:\n- name: u\n  user: {token: MARKER\ncontexts: [\n";

/// A run with the environment of a pod: the service of the API server is set.
fn in_a_pod(args: &[&str], forbidden: &Forbidden) -> Reaper {
    let address = forbidden.address();
    reaper(args)
        .env("KUBERNETES_SERVICE_HOST", &address.ip().to_string())
        .env("KUBERNETES_SERVICE_PORT", &address.port().to_string())
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
        run.run()
            .exits(1)
            .shows_on_stderr(&["error: could not list nodes", "connection"])
            .never_prints("MARKER");
        assert!(
            asked.swap(0, Ordering::SeqCst) > 0,
            "{name}: the cluster was not asked"
        );
    };
    let with_file = |name: &str| {
        let run = reaper(&["--dry-run=client"]);
        let path = run.file(name, &kubeconfig(address));
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
    run.command.args(["--context", "there"]);
    asks("--context", run.env("KUBECONFIG", &path));

    let (run, _) = with_file(".kube/config");
    asks("the default kubeconfig", run);
}

#[test]
fn an_unknown_context_ends_the_run_and_lists_those_that_are_known() {
    let forbidden = Forbidden::new();
    let run = in_a_pod(&["--context", "prod"], &forbidden);
    let path = run.file("config", &kubeconfig(forbidden.address()));
    run.env("KUBECONFIG", &path)
        .run()
        .exits(2)
        .shows_on_stderr(&["--context prod", "here, there"])
        .never_prints("MARKER");
    forbidden.was_left_alone();
}

#[test]
fn a_broken_kubeconfig_never_falls_back_to_another_cluster() {
    let forbidden = Forbidden::new();
    let good = kubeconfig(forbidden.address());

    // By option; the kubeconfigs that would be used without it are valid.
    let mut run = in_a_pod(&["--dry-run=client"], &forbidden);
    let path = run.file("broken", BROKEN);
    run.file(".kube/config", &good);
    let other = run.file("good", &good);
    run.command.args(["--kubeconfig", &path]);
    let ended = run.env("KUBECONFIG", &other).run().exits(2);
    ended
        .shows_on_stderr(&["--kubeconfig", &path, "not a kubeconfig", "line"])
        .never_prints("MARKER");

    // By variable, alone and in a list.
    for list in [
        &["broken"][..],
        &["broken", "good"],
        &["good", "broken"],
        &["absent", "broken"],
    ] {
        let run = in_a_pod(&["--dry-run=client"], &forbidden);
        run.file("broken", BROKEN);
        run.file("good", &good);
        run.file(".kube/config", &good);
        let paths = list
            .iter()
            .map(|name| run.home.path().join(name).display().to_string())
            .collect::<Vec<_>>();
        let ended = run.env("KUBECONFIG", &paths.join(":")).run().exits(2);
        ended
            .shows_on_stderr(&["KUBECONFIG", "broken", "not a kubeconfig"])
            .never_prints("MARKER");
    }

    // At the default place.
    let run = in_a_pod(&["--dry-run=client"], &forbidden);
    run.file(".kube/config", BROKEN);
    run.run()
        .exits(2)
        .shows_on_stderr(&[".kube/config", "not a kubeconfig"])
        .never_prints("MARKER");

    forbidden.was_left_alone();
}

#[test]
fn what_is_no_kubeconfig_at_all_is_refused_without_being_shown() {
    let forbidden = Forbidden::new();
    for (name, text) in [
        ("empty", ""),
        ("a bare token", "MARKER"),
        ("a list", "- MARKER\n"),
        ("another type", "users: MARKER\n"),
        ("a certificate", "-----BEGIN MARKER-----\n"),
        ("no context", "apiVersion: v1\nkind: Config\n"),
        (
            "half a context",
            "current-context: here\ncontexts:\n- name: here\n  context: {cluster: MARKER, user: u}\n",
        ),
        (
            "no server",
            "current-context: h\nclusters:\n- {name: c, cluster: {server: 'MARKER:6443'}}\nusers:\n- {name: u, user: {}}\ncontexts:\n- {name: h, context: {cluster: c, user: u}}\n",
        ),
    ] {
        let mut run = in_a_pod(&["--dry-run=client"], &forbidden);
        let path = run.file("config", text);
        run.command.args(["--kubeconfig", &path]);
        let ended = run.run();
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (2, ""),
            "{name}: {}",
            ended.err
        );
        // The name of a missing cluster may be printed, since it is no secret.
        if name != "half a context" {
            assert!(!ended.err.contains("MARKER"), "{name}: {}", ended.err);
        }
    }
    forbidden.was_left_alone();
}

#[test]
fn a_kubeconfig_that_is_not_there_is_wrong_usage() {
    let forbidden = Forbidden::new();
    let run = in_a_pod(&["--kubeconfig", "/nowhere/config"], &forbidden);
    run.run()
        .exits(2)
        .shows_on_stderr(&["--kubeconfig /nowhere/config", "No such file"]);
    let run = in_a_pod(&[], &forbidden).env("KUBECONFIG", "/nowhere/a:/nowhere/b");
    run.file(".kube/config", &kubeconfig(forbidden.address()));
    run.run()
        .exits(2)
        .shows_on_stderr(&["KUBECONFIG", "/nowhere/a", "/nowhere/b", "no such file"]);
    in_a_pod(&["--context", "prod"], &forbidden)
        .run()
        .exits(2)
        .shows_on_stderr(&["--context prod", "no kubeconfig", "--kubeconfig"]);
    forbidden.was_left_alone();
}

#[test]
fn without_any_cluster_the_program_cannot_run() {
    reaper(&[])
        .run()
        .exits(1)
        .shows_on_stderr(&["no cluster", "--kubeconfig", "--snapshot"]);
    reaper(&[])
        .env("KUBECONFIG", "")
        .run()
        .exits(1)
        .shows_on_stderr(&["no cluster"]);
}
