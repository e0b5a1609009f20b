//! A signal ends a run, and slow credentials do not make it rely on an old reading of the node.

use crate::prelude::*;
use std::{os::unix::fs::PermissionsExt as _, sync::atomic::AtomicU32};

/// Creates a dead node with this many stuck pods, and two Ready nodes.
fn many_stuck(cluster: &ControlPlane, pods: usize) {
    one_dead_of_three(cluster);
    for pod in 0..pods {
        make(cluster, &format!("Pod apps/stuck-{pod}: {{}}"));
    }
    until_overdue();
}

fn outcomes(report: &Value, code: &str) -> u64 {
    let count = report["summary"]["outcomes"][code].as_u64();
    count.expect("every outcome is counted")
}

/// The UIDs of the pods that are left in `apps`.
fn left(cluster: &ControlPlane) -> BTreeSet<String> {
    let list = cluster.get("/api/v1/namespaces/apps/pods");
    each(&list["items"]).map(uid).collect()
}

/// At most eight requests are in progress at the same time, so at least four have not been sent.
#[test]
fn a_signal_lets_what_is_in_flight_finish_and_reports_the_rest() {
    let cluster = fresh();
    many_stuck(&cluster, 12);
    let pid = Arc::new(AtomicU32::new(0));
    let target = Arc::clone(&pid);
    let proxy = Proxy::start(cluster.server(), move |seen| {
        if seen.method == "DELETE" {
            // The signal is sent only once, because a second one would end the run before its report.
            let pid = target.swap(0, Ordering::SeqCst);
            if pid != 0 {
                Command::new("kill")
                    .args(["-TERM", &pid.to_string()])
                    .status()
                    .expect("kill");
            }
            thread::sleep(Duration::from_millis(1_500));
        }
    });
    let mut command = binary(&proxy.kubeconfig);
    command
        .args(SHORT)
        .args(["--output", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    pid.store(child.id(), Ordering::SeqCst);
    let output = end_of(child, Duration::from_mins(2));
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{log}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let (deleted, interrupted) = (
        outcomes(&report, "deleted"),
        outcomes(&report, "interrupted"),
    );
    assert!(
        deleted > 0 && interrupted >= 4 && deleted + interrupted == 12,
        "{report}"
    );
    let pods = each(&report["pods"]);
    let interrupted = pods
        .filter(|pod| pod["outcome"] == "interrupted")
        .map(uid_of_entry);
    let interrupted = interrupted.collect::<BTreeSet<_>>();
    assert_eq!(interrupted, left(&cluster));
    // No time is left for Events.
    assert!(!proxy.seen().iter().any(Seen::is_event), "{log}");
}

/// Safety rule 2: renewing the credentials takes eight seconds, right before the delete.
#[test]
fn a_write_that_has_to_wait_for_credentials_looks_at_the_node_again() {
    let cluster = fresh();
    many_stuck(&cluster, 1);
    let looks = AtomicU32::new(0);
    let proxy = Proxy::start(cluster.server(), move |seen| {
        // This is the read right before the delete. When its response arrives, the token is about to expire.
        if seen.path == node_path("dead") && looks.fetch_add(1, Ordering::SeqCst) == 1 {
            thread::sleep(Duration::from_secs(2));
        }
    });
    // The plugin's first tokens expire in 62 s, and kube renews tokens that expire within 60 s. Kube calls the plugin more than
    // once at the start; after that the plugin is slow.
    let born = cluster.dir.join("plugin-born");
    let plugin = cluster.dir.join("plugin");
    let script = format!(
        "#!/bin/sh\nexpires=62\n[ -e {0} ] || date +%s%N > {0}\n\
         if [ $(($(date +%s%N) - $(cat {0}))) -gt 1500000000 ]; then sleep 8; expires=3600; fi\n\
         date=$(date -u -d @$(($(date +%s) + expires)) +%Y-%m-%dT%H:%M:%SZ)\n\
         echo '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":\
         {{\"token\":\"t\",\"expirationTimestamp\":\"'$date'\"}}}}'\n",
        born.display()
    );
    fs::write(&plugin, script).expect("our folder");
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).expect("our file");
    // No credentials are sent without TLS, which the proxy does not speak.
    let kubeconfig = fs::read_to_string(&proxy.kubeconfig).expect("a kubeconfig");
    let (_, address) = kubeconfig.split_once("http://").expect("an address");
    let (address, _) = address.split_once('\'').expect("its end");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let tls = free.expect("a free port").port();
    let certificate = cluster.dir.join("certs/apiserver");
    let file = |ending| certificate.with_extension(ending).display().to_string();
    let mut front = Command::new("socat")
        .arg(format!(
            "OPENSSL-LISTEN:{tls},bind=127.0.0.1,reuseaddr,fork,verify=0,cert={},key={}",
            file("crt"),
            file("key")
        ))
        .arg(format!("TCP:{address}"))
        .spawn()
        .expect("socat starts");
    until("socat listens", || {
        std::net::TcpStream::connect(("127.0.0.1", tls)).is_ok()
    });
    let plugin = format!(
        "exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: {}}}",
        plugin.display()
    );
    let kubeconfig = fs::read_to_string(&cluster.kubeconfig).expect("a kubeconfig");
    let kubeconfig = kubeconfig
        .replace(&cluster.url, &format!("https://127.0.0.1:{tls}"))
        .replace(&format!("token: {}", cluster.token), &plugin);
    fs::write(&proxy.kubeconfig, kubeconfig).expect("our file");
    let run = run(&proxy.kubeconfig, &SHORT);
    front.kill().and_then(|()| front.wait()).expect("it ends");
    assert!(born.exists());
    run.ends(0);
    assert_eq!(outcomes(&run.report, "deleted"), 1);
    let seen = proxy.seen();
    let delete = seen.iter().position(Seen::is_change).expect("a delete");
    let looked = seen[..delete]
        .iter()
        .rfind(|seen| seen.path == node_path("dead"))
        .expect("a look");
    assert!(seen[delete].at - looked.at < Duration::from_secs(5));
    assert!(
        seen.last().expect("the verifying list").at - seen[0].at > Duration::from_secs(8),
        "it had to wait"
    );
}
