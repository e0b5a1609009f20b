//! The metrics of a run, in a real Pushgateway and in a file that promtool accepts.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "UPDATE_EXPECT=1 writes them"
)]

use crate::{
    prelude::*,
    support::{
        exporter::{Exporter, needed},
        installed,
    },
};
use expect_test::expect;
use std::io::{Read as _, Write as _};

/// A name that must be escaped in a label, and encoded in a path.
const CLUSTER: &str = r#"eu/"prod" \1"#;
const LABEL: &str = r#"cluster="eu/\"prod\" \\1""#;

/// The password of the gateway's user, and its bcrypt hash at the lowest cost.
const PASSWORD: &str = "hunter2";
const USERS: &str =
    "basic_auth_users: {reaper: '$2b$04$u0/Vfaw1UdqI9xAmaHJlV.TbTkux.wNQaY.OkQVTQCNglAD6JvVGm'}\n";
/// `reaper:hunter2`, encoded for the header.
const AUTHORIZATION: &str = "Basic cmVhcGVyOmh1bnRlcjI=";

/// A Pushgateway of one test, which ends with the test.
struct Gateway {
    exporter: Exporter,
    folder: tempfile::TempDir,
}

impl Gateway {
    fn start() -> Self {
        Self::start_with("")
    }

    /// Starts the gateway with additional web configuration, which may name the certificate `cert.pem` and its key `key.pem`.
    fn start_with(configuration: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let web = folder.path().join("web.yaml");
        fs::write(&web, format!("{USERS}{configuration}")).expect("our folder");
        let made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
             -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out cert.pem";
        let mut openssl = Command::new("openssl");
        let made = openssl
            .args(made.split(' '))
            .current_dir(folder.path())
            .output();
        let made = made.expect("openssl");
        succeeds(&made);
        let mut command = Command::new(needed("prometheus-pushgateway"));
        command.args(["--web.listen-address=127.0.0.1:0", "--persistence.file="]);
        command.arg(format!("--web.config.file={}", web.display()));
        Self {
            exporter: Exporter::start(&command, "127.0.0.1"),
            folder,
        }
    }

    /// The options that make a run push the numbers to this gateway, and write them to [`file`](Self::file).
    fn options(&self) -> Vec<String> {
        let (url, file) = (self.url(), self.file().display().to_string());
        let options = [
            "--cluster-name",
            CLUSTER,
            "--push-gateway",
            &url,
            "--metrics-file",
            &file,
        ];
        options.map(str::to_owned).to_vec()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("pod-reaper.prom")
    }

    fn url(&self) -> String {
        format!("http://reaper:{PASSWORD}@{}", self.exporter.address)
    }

    /// The series of pod-reaper as Prometheus would scrape them: the values by name and labels, the labels in alphabetical order.
    fn scrape(&self) -> BTreeMap<String, f64> {
        let authorization = format!("Authorization: {AUTHORIZATION}\r\n");
        let answer = self.exporter.scrape(&authorization);
        let pushes = answer
            .lines()
            .filter(|line| line.starts_with("push_failure_time_seconds{"));
        let pushes = pushes.collect_vec();
        assert!(
            pushes.len() <= 2 && pushes.iter().all(|line| line.ends_with(" 0")),
            "{pushes:?}"
        );
        samples(&answer)
    }
}

fn samples(text: &str) -> BTreeMap<String, f64> {
    let ours = text.lines().filter(|line| line.starts_with("pod_reaper_"));
    let pairs = ours.map(|line| {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        (series.to_owned(), value.parse().expect("a number"))
    });
    pairs.collect()
}

/// A series as the gateway prints it, with the labels that the gateway adds. `labels` begins with a comma.
fn pushed(name: &str, labels: &str) -> String {
    format!("pod_reaper_{name}{{{LABEL},instance=\"\",job=\"pod-reaper\"{labels}}}")
}

#[track_caller]
fn value(samples: &BTreeMap<String, f64>, name: &str) -> f64 {
    *samples
        .get(&pushed(name, ""))
        .unwrap_or_else(|| panic!("no {name} in {samples:#?}"))
}

/// The numbers of the JSON report, as series of the gateway.
fn counted(report: &Value) -> BTreeMap<String, f64> {
    let number = |value: &Value| value.as_f64().expect("a number");
    let mut expected = BTreeMap::new();
    for pod in report["pods"].as_array().expect("pods") {
        let labels = format!(",reason={},verdict={}", pod["reason"], pod["verdict"]);
        *expected.entry(pushed("pods", &labels)).or_default() += 1.0;
    }
    for (outcome, count) in report["summary"]["outcomes"].as_object().expect("outcomes") {
        let labels = format!(",outcome=\"{outcome}\"");
        expected.insert(pushed("outcomes", &labels), number(count));
    }
    assert_eq!(report["errors"], json!([]));
    expected.extend([
        (
            pushed("nodes_not_ready", ""),
            number(&report["summary"]["nodesNotReady"]),
        ),
        (pushed("exit_code", ""), number(&report["exitCode"])),
        (pushed("read_errors", ""), 0.0),
        (
            pushed("breaker_held_pods", ""),
            report["breaker"].get("held").map_or(0.0, number),
        ),
    ]);
    expected
}

#[test]
fn what_a_run_hands_over_are_the_numbers_of_its_report() {
    let cluster = six_nodes::after_an_hour();
    let gateway = Gateway::start();
    let (file, options) = (gateway.file(), gateway.options());
    let options = options
        .iter()
        .map(String::as_str)
        .chain(["--log-level=trace"])
        .collect_vec();
    let run = run(&cluster.kubeconfig, &[&SHORT[..], &options].concat());
    run.ends(0);
    assert!(
        !run.log.contains("WARN") && !run.log.contains(PASSWORD),
        "{}",
        run.log
    );
    assert_eq!(run.report["clusterName"], CLUSTER);

    let scraped = gateway.scrape();
    let counted = counted(&run.report);
    for (series, count) in &counted {
        assert_eq!(scraped.get(series), Some(count), "{series} in {scraped:#?}");
    }
    // Each pod is counted exactly once.
    let pods = |samples: &BTreeMap<String, f64>| {
        samples
            .iter()
            .filter(|(name, _)| name.starts_with("pod_reaper_pods{"))
            .map(|(_, count)| count)
            .sum::<f64>()
    };
    assert!(pods(&counted) >= 9.0, "{counted:#?}");
    assert!(
        (pods(&scraped) - pods(&counted)).abs() < 0.5,
        "{scraped:#?}"
    );
    assert_eq!(scraped.get(&pushed("mode", ",mode=\"delete\"")), Some(&1.0));
    let version = format!(",version=\"{}\"", env!("CARGO_PKG_VERSION"));
    assert_eq!(scraped.get(&pushed("build_info", &version)), Some(&1.0));
    assert_eq!(
        value(&scraped, "last_success_timestamp_seconds").to_bits(),
        value(&scraped, "last_run_timestamp_seconds").to_bits()
    );
    assert!(value(&scraped, "run_duration_seconds") > 0.0);

    // The file has the same series, without the labels of the gateway, and promtool accepts the file.
    let text = fs::read_to_string(&file).expect("a file");
    let mut in_file = samples(&text).into_values().collect_vec();
    let mut in_gateway = scraped.into_values().collect_vec();
    in_file.sort_by(f64::total_cmp);
    in_gateway.sort_by(f64::total_cmp);
    assert_eq!(in_file, in_gateway);
    check(&file);
}

#[test]
fn each_of_many_clusters_has_its_own_group_at_the_gateway() {
    let cluster = six_nodes::after_an_hour();
    installed::install(&cluster, DEFAULT);
    let settings = installed::settings(&cluster);
    let gateway = Gateway::start();
    own_pod(&cluster, "pod-reaper");
    let output = binary(&installed::kubeconfig(&cluster))
        .envs(settings)
        .envs([("POD_NAMESPACE", "pod-reaper"), ("POD_NAME", OWN)])
        .env("PUSH_GATEWAY", gateway.url())
        .env("CLUSTER_NAME", "prod-eu")
        .env("EXIT_ON_MANUAL", "false")
        // The image sets the same variables.
        .envs([
            ("SSL_CERT_FILE", "/nonexistent"),
            ("SSL_CERT_DIR", "/nonexistent"),
        ])
        .args(SHORT)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("prod-eu"), "{report}");
    let deleted =
        r#"pod_reaper_outcomes{cluster="prod-eu",instance="",job="pod-reaper",outcome="deleted"}"#;
    let scraped = gateway.scrape();
    assert_eq!(
        scraped.get(deleted).map(ToString::to_string),
        Some(six_nodes::STUCK.len().to_string())
    );
    let of_cluster = |series: &String| series.contains(r#"{cluster="prod-eu","#);
    assert!(scraped.keys().all(of_cluster), "{scraped:#?}");
}

/// A run sends nothing to a gateway with an untrusted certificate, in particular no password.
#[test]
fn a_gateway_with_an_untrusted_certificate_is_sent_nothing() {
    let cluster = fresh();
    let gateway =
        Gateway::start_with("tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n");
    let certificate = gateway.folder.path().join("cert.pem");
    let url = format!(
        "https://reaper:{PASSWORD}@localhost:{}",
        gateway.exporter.address.rsplit(':').next().expect("a port")
    );
    for trusted in [true, false] {
        let mut command = binary(&cluster.kubeconfig);
        if trusted {
            command.env("SSL_CERT_FILE", &certificate);
        }
        let output = command
            .args(["--push-gateway", &url])
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(log.matches("WARN").count(), usize::from(!trusted), "{log}");
        assert!(!shown(&output).contains(PASSWORD), "{}", shown(&output));
    }
}

/// Runs `promtool check metrics`, which must find no problem.
#[track_caller]
fn check(file: &Path) {
    let text = fs::File::open(file).expect("a file");
    let checked = Command::new(needed("promtool"))
        .args(["check", "metrics"])
        .stdin(text)
        .output()
        .expect("promtool");
    assert!(
        checked.status.success() && shown(&checked).is_empty(),
        "{}",
        shown(&checked)
    );
}

/// A kubeconfig of an API server that does not exist.
fn unreachable_server(cluster: &ControlPlane) -> PathBuf {
    let own = fs::read_to_string(&cluster.kubeconfig).expect("a kubeconfig");
    let file = cluster.dir.join("unreachable.kubeconfig");
    fs::write(&file, own.replace(&cluster.url, "https://127.0.0.1:1")).expect("our folder");
    file
}

#[test]
fn a_run_that_is_no_success_keeps_the_time_of_the_last_success() {
    let cluster = six_nodes::after_an_hour();
    let gateway = Gateway::start();
    let (file, options) = (gateway.file(), gateway.options());
    let options = options.iter().map(String::as_str).collect_vec();
    let refusing = Proxy::with_faults(cluster.server(), |seen| {
        if seen.is_write() {
            Act::Instead(500, Value::Null)
        } else {
            Act::Forward
        }
    });
    let kubeconfig = |name: &str| match name {
        "cannot run" => unreachable_server(&cluster),
        "fails" => refusing.kubeconfig.clone(),
        _ => cluster.kubeconfig.clone(),
    };
    let hand_over = |name: &str, code: i32, dry: &[&str]| {
        let mut command = binary(&kubeconfig(name));
        let output = command
            .args(SHORT)
            .args(&options)
            .args(dry)
            .output()
            .expect("it starts");
        assert_eq!(
            output.status.code(),
            Some(code),
            "{name}: {}",
            shown(&output)
        );
        check(&file);
        let scraped = gateway.scrape();
        assert_eq!(
            value(&scraped, "exit_code").to_bits(),
            f64::from(code).to_bits(),
            "{name}"
        );
        let text = fs::read_to_string(&file).expect("a file");
        let success = text.lines().find_map(|line| {
            line.strip_prefix("pod_reaper_last_success_timestamp_seconds{")?
                .rsplit_once(' ')?
                .1
                .parse::<f64>()
                .ok()
        });
        assert_eq!(
            success.map(f64::to_bits),
            scraped
                .get(&pushed("last_success_timestamp_seconds", ""))
                .map(|value| value.to_bits()),
            "{name}: file and gateway"
        );
        (success, scraped)
    };
    let manual = pushed("pods", r#",reason="local-volume",verdict="manual""#);

    // There is no earlier success to keep.
    assert_eq!(hand_over("cannot run", 1, &[]).0, None);
    let (first, scraped) = hand_over("succeeds", 0, &[]);
    assert!(first.is_some());
    assert_eq!(scraped.get(&manual), Some(&1.0));
    let mut last_run = value(&scraped, "last_run_timestamp_seconds");

    // No pod is left to delete.
    let dry = ["--dry-run=client"];
    assert_eq!(hand_over("is dry", 0, &dry).0, first);
    one_more_is_stuck(&cluster);
    for (name, code, dry) in [
        ("cannot run", 1, &[][..]),
        ("fails", 3, &[]),
        ("is dry", 0, &dry),
    ] {
        let (success, scraped) = hand_over(name, code, dry);
        assert_eq!(success, first, "{name}");
        assert_eq!(scraped.get(&manual), Some(&1.0), "{name}");
        let ended = value(&scraped, "last_run_timestamp_seconds");
        assert!(ended > last_run, "{name}");
        last_run = ended;
    }
    let (second, _) = hand_over("succeeds", 0, &[]);
    assert!(second > first);
}

fn one_more_is_stuck(cluster: &ControlPlane) {
    make(cluster, "Pod etl/again-0: {node: ds06}");
    until_overdue();
}

/// Responds to each connection with `answer` until the test program ends. If `answer` is empty, it never responds.
fn answering(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port").to_string();
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(answer.as_bytes());
            if answer.is_empty() {
                held.push(stream);
            }
        }
    });
    address
}

/// The only warning of a log, without its time.
#[track_caller]
fn only_warning(log: &str) -> String {
    let warnings = log.lines().filter(|line| line.contains("WARN"));
    let [warning] = warnings.collect_vec()[..] else {
        panic!("{log}")
    };
    assert!(!log.contains(PASSWORD) && !log.contains("MARKER"), "{log}");
    let (_, warning) = warning.split_once("WARN ").expect("it is a warning");
    format!("{}\n", warning.trim())
}

#[test]
fn metrics_that_cannot_be_handed_over_change_nothing_and_are_one_warning() {
    let cluster = fresh();
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    elsewhere.set_nonblocking(true).expect("a socket");
    let to = format!(
        "Location: http://{}/",
        elsewhere.local_addr().expect("a port")
    );
    let redirect = format!(
        "HTTP/1.1 307 Temporary Redirect\r\n{to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let refusal =
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 6\r\nConnection: close\r\n\r\nMARKER"
            .to_owned();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("a port").to_string()
    };
    let plain = run(&cluster.kubeconfig, &SHORT);
    plain.ends(0);
    let mut warnings = String::new();
    for address in [
        closed,
        answering(String::new()),
        answering(redirect),
        answering(refusal),
    ] {
        let url = format!("--push-gateway=http://reaper:{PASSWORD}@{address}");
        let run = run(&cluster.kubeconfig, &[&SHORT[..], &[&url]].concat());
        run.ends(0);
        assert_eq!(run.report["summary"], plain.report["summary"], "{address}");
        warnings += &only_warning(&run.log).replace(&address, "ADDRESS");
    }
    assert!(elsewhere.accept().is_err(), "the redirect was followed");

    let nowhere = ["--metrics-file=/dev/null/pod-reaper.prom"];
    let run = run(&cluster.kubeconfig, &[&SHORT[..], &nowhere].concat());
    run.ends(0);
    warnings += &only_warning(&run.log);

    // A run that could not run reports the cause, and that its metrics were not pushed. Its exit code does not change.
    let mut command = binary(&unreachable_server(&cluster));
    let output = command
        .args(["--push-gateway", "http://127.0.0.1:1"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    warnings += &only_warning(&String::from_utf8_lossy(&output.stderr));
    expect![[r#"
        The metrics were not pushed to http://ADDRESS/: Connection refused (os error 111). The run is unaffected; check that a Pushgateway is there, and that --push-gateway names it
        The metrics were not pushed to http://ADDRESS/: it took longer than 5 s. The run is unaffected; check that a Pushgateway is there, and that --push-gateway names it
        The metrics were not pushed to http://ADDRESS/: it responded with 307 Temporary Redirect, and redirects are not followed. The run is unaffected; check that a Pushgateway is there, and that --push-gateway names it
        The metrics were not pushed to http://ADDRESS/: it responded with 400 Bad Request. The run is unaffected; check that a Pushgateway is there, and that --push-gateway names it
        The metrics were not written to /dev/null/pod-reaper.prom: Not a directory (os error 20). The run is unaffected; check that --metrics-file names a file in a writable directory
        The metrics were not pushed to http://127.0.0.1:1/: Connection refused (os error 111). The run is unaffected; check that a Pushgateway is there, and that --push-gateway names it
    "#]].assert_eq(&warnings);
}
