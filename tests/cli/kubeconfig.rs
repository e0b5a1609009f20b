//! Which cluster is contacted, and which never is.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use expect_test::expect_file;

use crate::{Forbidden, Reaper, data, reaper};

/// A kubeconfig with the contexts `prod` (current) and `dev`, line by line.
fn kubeconfig(address: SocketAddr, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\n\
         clusters:\n- name: c\n  cluster:\n    server: http://{address}\n\
         users:\n- name: u\n  user:\n    {user}\n\
         contexts:\n- name: prod\n  context: {{cluster: c, user: u}}\n- name: dev\n  context: {{cluster: c, user: u}}\n"
    )
}

/// Invalid YAML with a token, which must not be printed.
const BROKEN: &str = "apiVersion: v1\nusers:\n- name: u\n  user: {token: MARKER\ncontexts: [\n";

/// Runs the lines of a file that begin with `$`; below each are its exit code and what it prints. Nothing is read: not
/// the cluster of the default kubeconfig, nor that of the pod, and no credential plugin is run. That each message says
/// what to do is for a reader of the file to judge.
pub fn refused(file: &str) {
    let forbidden = Forbidden::new();
    let address = forbidden.address();
    let run = reaper(&[]);
    let home = run.home.path().display().to_string();
    let good = kubeconfig(address, "token: MARKER");
    let plugin = "exec: {command: touch, args: [ran], apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}";
    for (name, text) in [
        (".kube/config", good.as_str()),
        ("good", &good),
        ("plugin", &kubeconfig(address, plugin)),
        ("broken", BROKEN),
        ("empty", ""),
    ] {
        run.file(name, text);
    }
    let functions = format!(
        "pod-reaper() {{ {} \"$@\"; }}; changed() {{ sed \"$1\" good > changed; pod-reaper --yes --kubeconfig changed; }}",
        env!("CARGO_BIN_EXE_pod-reaper")
    );
    let file = data().join(file);
    let mut page = String::new();
    for line in fs::read_to_string(&file).expect("a file").lines() {
        if line.starts_with('#') {
            page += &format!("{line}\n\n");
        }
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        let mut bash = reaper(&[]);
        bash.command = Command::new("bash");
        bash.command
            .args(["-c", &format!("{functions}\n{command}")])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &home)
            .env("KUBERNETES_SERVICE_HOST", address.ip().to_string())
            .env("KUBERNETES_SERVICE_PORT", address.port().to_string())
            .current_dir(&home);
        let ended = bash.run().never_prints("MARKER");
        assert!(
            ended.out.is_empty() && [1, 2].contains(&ended.code),
            "{command}: {}{}",
            ended.out,
            ended.err
        );
        let says = ended.err.lines().filter(|line| !line.contains(" INFO "));
        let says = says.collect::<Vec<_>>().join("\n");
        let says = says
            .replace(&address.to_string(), "ADDRESS")
            .replace(&home, "HOME");
        let says = says.trim_end_matches("For more information, try '--help'.");
        page += &format!("$ {command}\n{} {}\n\n", ended.code, says.trim_end());
    }
    expect_file![&file].assert_eq(&page);
    assert!(!run.home.path().join("ran").exists(), "a plugin was run");
    forbidden.was_left_alone();
}

#[test]
fn a_broken_kubeconfig_never_falls_back_to_another_cluster() {
    refused("golden/wrong-kubeconfig.txt");
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
