//! Which cluster is contacted, and which never is.

use std::{
    fs,
    io::Read as _,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use pod_reaper_test_support::{in_repository, samples::yaml};

use crate::reaper;

/// A kubeconfig with the contexts `prod` (current) and `dev`, line by line.
pub fn kubeconfig(address: SocketAddr, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\n\
         clusters:\n- name: c\n  cluster:\n    server: https://{address}\n\
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

/// A token that is sent without TLS can be read on the way.
#[test]
fn a_token_is_never_sent_without_tls() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = thread::spawn(move || {
        let mut request = [0; 4_096];
        let (mut connection, _) = listener.accept().expect("a connection");
        let read = connection.read(&mut request).expect("a request");
        String::from_utf8_lossy(&request[..read]).to_lowercase()
    });
    let run = reaper(&["--dry-run"]);
    let file = kubeconfig(address, "token: MARKER").replace("https://", "http://");
    let path = run.file("config", &file);
    run.env("KUBECONFIG", &path).run();
    let request = asked.join().expect("it was asked");
    assert!(request.starts_with("get /api/"), "{request}");
    assert!(
        !request.contains("authorization") && !request.contains("marker"),
        "{request}"
    );
}

/// A context's name that rewrites the line of the terminal, as the question before the deletes shows it, too.
#[test]
fn the_name_of_a_context_is_shown_as_it_is() {
    let forbidden = crate::Forbidden::new();
    let run = reaper(&["--dry-run"]);
    let plugin = "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/absent-plugin, interactiveMode: Never}";
    let file = kubeconfig(forbidden.address(), plugin);
    let file = file.replace("prod", "\"prod\\e[2K\\u2800kubectl delete\"");
    let path = run.file("config", &file);
    let said = run.env("KUBECONFIG", &path).run().exits(1).err;
    let name = "context \"prod\u{fffd}[2K\u{fffd}kubectl delete\" at https://";
    assert!(said.contains(name), "{said}");
}

/// k9s puts its values into the arguments as text before anything reads them.
#[test]
fn the_plugin_of_k9s_runs_no_name() {
    let file = fs::read_to_string(in_repository("integrations/k9s.yaml")).expect("the plugins");
    let plugin = &yaml(&file)["plugins"]["pod-reaper-explain"];
    let run = reaper(&[]);
    let context = "\"; touch owned; $(touch owned) `touch owned`";
    let arguments = plugin["args"].as_array().expect("a list").iter();
    let arguments = arguments.map(|it| {
        let argument = it.as_str().expect("text").replace("$NAMESPACE", "shop");
        argument
            .replace("$NAME", "web-0")
            .replace("$CONTEXT", context)
    });
    for (name, script) in [
        ("pod-reaper", "for it; do echo \"[$it]\"; done"),
        ("less", "cat"),
    ] {
        let path = run.file(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
    let mut shell = Command::new(plugin["command"].as_str().expect("a program"));
    let path = format!("{}:/usr/bin:/bin", run.home.path().display());
    shell
        .args(arguments)
        .env("PATH", path)
        .current_dir(run.home.path());
    let ended = shell.output().expect("a shell");
    let expected = format!("[explain]\n[web-0]\n[-n]\n[shop]\n[--context={context}]\n");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), expected);
    assert!(!run.home.path().join("owned").exists(), "a name was run");
}
