//! Without a connection, trust or credentials the program cannot run, and it contacts no other server.

use std::{fs, net::TcpListener, path::PathBuf, process::Command};

use serde_json::Value;

use super::{DEADLINE, admission, run_in, stuck};
use crate::{
    one_dead,
    support::{ControlPlane, proxy::MARKER},
    until_overdue,
};

/// Returns the real server's kubeconfig with another server and CA certificate.
fn kubeconfig(cluster: &ControlPlane, name: &str, server: &str, authority: &str) -> PathBuf {
    let real = fs::read_to_string(&cluster.kubeconfig)
        .expect("a kubeconfig")
        .replace(&cluster.token, MARKER);
    let was = "certificate-authority-data:";
    assert!(real.contains(was) && real.contains(&cluster.url), "{real}");
    let file = cluster.dir.join(format!("{name}.kubeconfig"));
    let authority = match authority {
        "" => was.to_owned(),
        other => format!("certificate-authority: {other}\n    ignored:"),
    };
    let changed = real.replace(&cluster.url, server).replace(was, &authority);
    fs::write(&file, changed).expect("our folder");
    file
}

#[test]
fn without_a_trusted_server_and_accepted_credentials_the_program_cannot_run() {
    let cluster = one_dead();
    stuck(&cluster, "apps", "stuck-0");
    let (certificate, key) = admission::certificate(&cluster);
    let authority = certificate.as_str();
    let expired = cluster.dir.join("expired.crt").display().to_string();
    let renewed = [
        "x509", "-in", authority, "-signkey", &key, "-days", "0", "-out", &expired,
    ];
    let renewed = Command::new("openssl").args(renewed).status();
    assert!(renewed.expect("openssl starts").success());
    // The certificate expires in the meantime.
    until_overdue();
    let closed = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let closed = format!("https://{closed}");
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("https://{}", plain.local_addr().expect("it is bound"));
    let old = format!("https://{}", admission::deny_all(&expired, &key));
    // The name is too long for a host name, so connecting fails without a resolver.
    let nowhere = format!("https://{}.invalid", "a".repeat(64));
    let server = &cluster.url;
    let rows = [
        (
            "a token that is not accepted",
            server.as_str(),
            "",
            &["401"][..],
        ),
        (
            "another authority",
            server,
            authority,
            &["not signed by", "get a new kubeconfig"],
        ),
        (
            "an expired certificate",
            &old,
            &expired,
            &["certificate expired at 20"],
        ),
        ("nothing listens", &closed, "", &["refused", "network path"]),
        ("no such name", &nowhere, "", &["dns"]),
        ("a server that hangs up", &address, "", &["no connection"]),
    ];
    // Accepts each connection and closes it.
    std::thread::spawn(move || plain.incoming().for_each(drop));
    super::at_once(&rows, |(name, server, authority, says)| {
        let kubeconfig = kubeconfig(&cluster, &name.replace(' ', "-"), server, authority);
        let run = run_in("apps", &kubeconfig, DEADLINE, &[]);
        assert_eq!(
            (run.code, &run.report),
            (1, &Value::Null),
            "{name}: {}",
            run.log
        );
        let mut wanted = vec!["could not list nodes of context test at", server];
        wanted.extend(*says);
        assert!(
            wanted.iter().all(|part| run.log.contains(part)),
            "{name}: {}",
            run.log
        );
    });
    assert!(cluster.has_pod("apps", "stuck-0"));
}
