//! Tests `cronjob/` on a real API server: the manifests are applied without a warning, the role has exactly the permissions that
//! a run needs.

use crate::{
    prelude::*,
    support::installed::{self, BASE, DRY_RUN, as_account, install},
};

const CLUSTER_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/pod-reaper";

/// The role of the history, and its `ConfigMap`.
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/pod-reaper/roles/pod-reaper";
const HISTORY: &str = "/api/v1/namespaces/pod-reaper/configmaps/pod-reaper-history";

/// Each permission that a role grants, as the verb and the resource with its subresource, and the role's rules without that
/// permission.
fn rights(role: &Value) -> Vec<(String, Value)> {
    let rules = role["rules"].as_array().expect("rules");
    let mut rights = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        for verb in rule["verbs"].as_array().expect("verbs") {
            for resource in rule["resources"].as_array().expect("resources") {
                let mut left = rules.clone();
                left.remove(at);
                // The other pairs of verb and resource of this rule.
                for other in rule["resources"].as_array().expect("resources") {
                    let verbs = each(&rule["verbs"]);
                    let verbs = verbs.filter(|other_verb| *other_verb != verb || other != resource);
                    let verbs = verbs.cloned().collect_vec();
                    if !verbs.is_empty() {
                        left.push(
                            json!({"apiGroups": rule["apiGroups"], "resources": [other], "verbs": verbs}),
                        );
                    }
                }
                let right = format!("{verb} {resource}").replace('"', "");
                rights.push((right, Value::Array(left)));
            }
        }
    }
    rights
}

/// The number of stuck pods that a run reaps after [`everything_stuck`].
const ALL: usize = six_nodes::STUCK.len() + 2;

/// Sets up the six-node case, plus a pod that only the Job controller's finalizer blocks, and a pod on a disk that its driver
/// might not attach to a machine. So a run uses every permission.
fn everything_stuck(cluster: &ControlPlane) -> String {
    six_nodes::failed(cluster);
    // This control plane node makes the run also read the Leases of API servers.
    make(
        cluster,
        "
        Node cp: {metadata: {labels: {node-role.kubernetes.io/control-plane: ''}}}
        Pod etl/on-a-disk: {node: ds06, owner: ReplicaSet web,
            volume: {csi: {driver: csi.example.org, fsType: ext4, volumeHandle: disk}}}
        ",
    );
    let held = "etl/held-by-job: {node: ds06, owner: Job held,
        metadata: {finalizers: [batch.kubernetes.io/job-tracking]}}";
    let held = pod(cluster, held);
    until_overdue();
    held
}

/// A proxy that changes one pod right before its delete, so that the run must read the pod again.
fn with_a_changing_pod(cluster: &'static ControlPlane) -> Proxy {
    let vault = pod_path("vault", "vault-0");
    Proxy::start(cluster, move |seen| {
        if seen.method == "DELETE" && seen.path.split('?').next() == Some(&vault) {
            // The value is always the same, so only the first write changes the pod.
            annotate(cluster, &vault, "example.org/touched", "once");
        }
    })
}

#[test]
fn each_is_applied_without_a_warning() {
    let cluster = fresh();
    // A dry run would not create the namespace.
    namespace(&cluster, "pod-reaper");
    let components =
        ["guard", "kosmos-guard"].map(|name| format!("cronjob/components/{name}/{name}.yaml"));
    let folders = [DEFAULT, BASE, DRY_RUN].map(|name| ("-k", name));
    let files = components.iter().map(|file| ("-f", file.as_str()));
    for (how, what) in folders.into_iter().chain(files) {
        let flags = "apply --dry-run=server --validate=strict --warnings-as-errors";
        let what = folder(what);
        kubectl(
            &cluster,
            &flags.split(' ').chain([how, &what]).collect_vec(),
        );
    }
}

/// The program accepts the shipped settings, and a role without any write is enough for them. Each permission to read is needed,
/// and a run reports a missing one.
#[test]
fn the_dry_run_overlay_reports_and_each_of_its_rights_is_needed() {
    let cluster = fresh();
    everything_stuck(&cluster);
    install(&cluster, DRY_RUN);
    let kubeconfig = installed::kubeconfig(&cluster);
    let shipped = settings(&cluster);
    let variables = shipped.iter();
    let variables = variables.map(|(name, value)| (name.as_str(), value.as_str()));
    let run = run_with(&kubeconfig, &variables.collect_vec(), &SHORT);
    // A volume moves, so it calls somebody.
    run.ends(5);
    assert_eq!(run.report["errors"], json!([]));
    assert_eq!(run.report["mode"], "dry-run");
    assert_eq!(run.report["summary"]["outcomes"]["would-delete"], ALL);

    // The account may not write.
    let denied = run_with(&kubeconfig, &[], &SHORT);
    denied.ends(3);
    assert_eq!(denied.report["summary"]["outcomes"]["denied"], ALL);

    // Each row has the permission, and without it the exit code and the number of pods that are not in the plan.
    let expected = "
        get nodes: 3, 9
        list nodes: 1, 9
        list namespaces: 3, 9
        list pods: 1, 9
        get persistentvolumeclaims: 3, 2
        get persistentvolumes: 3, 2
        list volumeattachments: 3, 0
        list csidrivers: 3, 1
        get leases: 3, 9
        # What still renews another Lease then shows no sign of life, and the report says so.
        list leases: 0, 0
        # No pod owns a PVC.
        get statefulsets: 0, 0
        # Only a pod that has changed right before its delete is read.
        get pods: 0, 0
    ";
    let expected = expected.trim().lines().map(|line| line.trim().to_owned());
    let expected = expected.filter(|line| !line.starts_with('#'));
    let mut seen = BTreeSet::new();
    for (right, left) in rights(&cluster.get(CLUSTER_ROLE)) {
        cluster.merge_patch(CLUSTER_ROLE, json!({"rules": left}));
        let (verb, resource) = right.split_once(' ').expect("two words");
        let group = match resource {
            "leases" => "coordination.k8s.io",
            "volumeattachments" | "csidrivers" => "storage.k8s.io",
            "statefulsets" => "apps",
            _ => "",
        };
        until("the right is gone", || {
            !may(&cluster, verb, group, resource, "")
        });
        let output = binary(&kubeconfig)
            .args(short("--dry-run --output json"))
            .output()
            .expect("it starts");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let planned = report["summary"]["outcomes"]["would-delete"].as_u64();
        let missing = ALL - usize::try_from(planned.unwrap_or_default()).unwrap();
        let code = output.status.code().unwrap_or_default();
        seen.insert(format!("{right}: {code}, {missing}"));
    }
    assert_eq!(seen, expected.collect());

    let of_history = rights(&cluster.get(ROLE)).into_iter();
    let of_history = of_history.map(|(right, _)| right).collect_vec();
    assert_eq!(of_history, ["get configmaps"]);
}

/// However the manifests are applied again, the history keeps what runs have noted. The account may change only this object.
#[test]
fn the_history_outlives_an_update_of_the_manifests() {
    let cluster = fresh();
    install(&cluster, DEFAULT);
    let noted =
        json!({"data": {"last-report": "something", "01234567-89ab-cdef-0123-456789abcdef": "{}"}});
    until("the account may write it", || {
        as_account(&cluster, "PATCH", HISTORY, &noted).0 == 200
    });
    let folder = folder(DEFAULT);
    for how in [
        "",
        "--server-side --force-conflicts",
        "--server-side --force-conflicts",
        "",
    ] {
        let how = how.split_whitespace();
        let apply = ["apply", "--warnings-as-errors", "-k", &folder];
        kubectl(
            &cluster,
            &apply.into_iter().chain(how.clone()).collect_vec(),
        );
        assert_eq!(cluster.get(HISTORY)["data"], noted["data"], "{how:?}");
    }
    let configmaps = "/api/v1/namespaces/pod-reaper/configmaps";
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    cluster.create(configmaps, other.clone());
    for (verb, path) in [
        ("PATCH", format!("{configmaps}/other")),
        ("GET", format!("{configmaps}/other")),
        ("GET", configmaps.to_owned()),
        ("PUT", HISTORY.to_owned()),
        ("DELETE", HISTORY.to_owned()),
        ("POST", configmaps.to_owned()),
    ] {
        let (status, _) = as_account(&cluster, verb, &path, &other);
        assert_eq!(status, 403, "{verb} {path}");
    }
}

/// `kubectl set env` and a kustomize patch change an option of the next run, in addition to those that components set.
#[test]
fn kubectl_and_a_patch_change_an_option() {
    let cluster = fresh();
    install(&cluster, DEFAULT);
    let are = |expected: &[(&str, &str)]| {
        let settings = settings(&cluster);
        for (name, value) in expected {
            let set = is_set_to(&settings, name);
            assert_eq!(set.as_deref(), Some(*value), "{name}");
        }
    };
    let set = "set env cronjob/pod-reaper --namespace=pod-reaper REAP_OLDER_THAN=5m MAX_DELETES=7";
    kubectl(&cluster, &set.split(' ').collect_vec());
    are(&[
        ("REAP_OLDER_THAN", "5m"),
        ("MAX_DELETES", "7"),
        ("REQUIRE_GUARD", "true"),
    ]);
    let patch = "
patches:
- target: {kind: CronJob, name: pod-reaper}
  patch: |
    apiVersion: batch/v1
    kind: CronJob
    metadata: {name: pod-reaper}
    spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: pod-reaper, env: [{name: REAP_OLDER_THAN, value: 20m}]}]}}}}}
";
    let file = cluster.dir.join("patched.yaml");
    fs::write(&file, kustomized(DEFAULT, &["eager", "dry-run"], patch)).expect("our folder");
    let file = file.display().to_string();
    kubectl(&cluster, &["apply", "--warnings-as-errors", "-f", &file]);
    are(&[
        ("REAP_OLDER_THAN", "20m"),
        ("DEADLINE", "90s"),
        ("DRY_RUN", "true"),
        ("REQUIRE_GUARD", "true"),
    ]);
}

/// Runs with the guards in force. The first guard must prove itself. According to the audit log, the run uses exactly the
/// permissions that the role grants. Only the request for the proof was forbidden.
#[test]
fn a_full_run_is_never_refused_and_uses_every_right() {
    let policy = folder("tests/data/audit-policy.yaml");
    let flags = [
        &format!("--audit-policy-file={policy}"),
        "--audit-log-path=logs/audit.log",
    ];
    let cluster = ControlPlane::start(&flags.map(AsRef::as_ref))
        .unwrap_or_else(|message| panic!("{message}"));
    let cluster: &'static ControlPlane = Box::leak(Box::new(cluster));
    // The run reads the StatefulSet of this pod, which needs you.
    stuck_with_disk(cluster, six_nodes::DEAD);
    let job_pod = everything_stuck(cluster);
    install(cluster, DEFAULT);
    let roles = [CLUSTER_ROLE, ROLE].map(|path| rights(&cluster.get(path)));
    let granted = roles.into_iter().flatten();
    let granted = granted.map(|(right, _)| right).collect::<BTreeSet<_>>();
    own_pod(cluster, "pod-reaper");
    let shipped = settings(cluster);
    let variables = [
        ("POD_NAMESPACE", "pod-reaper"),
        ("POD_NAME", OWN),
        ("EXIT_ON_MANUAL", "false"),
    ];
    let variables = shipped
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .chain(variables);
    let variables = variables.collect_vec();

    let dry = run_with(
        &installed::kubeconfig(cluster),
        &variables,
        &short("--dry-run --exit-on-manual=false"),
    );
    dry.is_whole();
    assert_eq!(dry.report["summary"]["outcomes"]["would-delete"], ALL);

    // The Job controller removes its finalizer from a failed pod.
    let path = pod_path("etl", "held-by-job");
    let controller = thread::spawn(move || {
        let started = Instant::now();
        while cluster.get(&path)["status"]["phase"] != "Failed" {
            assert!(
                started.elapsed() < Duration::from_mins(5),
                "it was not set to Failed"
            );
            thread::sleep(Duration::from_millis(20));
        }
        cluster.merge_patch(&path, yaml("{metadata: {finalizers: null}}"));
    });
    let options = short("--exit-on-manual=false");
    let proxy = with_a_changing_pod(cluster);
    let real = run_with(&proxy.kubeconfig_of(ACCOUNT), &variables, &options);
    controller.join().expect("it let go");
    real.is_whole();
    let outcomes = &real.report["summary"]["outcomes"];
    assert_eq!(outcomes["deleted"], ALL, "{outcomes}");
    real.says(&job_pod, REAPED);
    let noted = &cluster.get(HISTORY)["data"];
    assert!(str_of(&noted["last-report"]).contains("vault-0"), "{noted}");

    // Sends one more request that every account may send. Once the log has this request, it also has the earlier ones.
    as_account(cluster, "GET", "/version", &Value::Null);
    let log = cluster.dir.join("logs/audit.log");
    let mut events = Vec::new();
    until("the audit log is complete", || {
        let text = fs::read_to_string(&log).expect("an audit log");
        let all = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let by_account = |event: &Value| {
            event["user"]["username"] == ACCOUNT || event["impersonatedUser"]["username"] == ACCOUNT
        };
        events = all.filter(by_account).collect();
        events
            .last()
            .is_some_and(|event| event["requestURI"] == "/version")
    });
    let program = |event: &&Value| {
        event["userAgent"]
            .as_str()
            .is_some_and(|agent| agent.starts_with("pod-reaper/"))
    };
    let mut used = BTreeSet::new();
    for event in events.iter().filter(program) {
        let text = |field: &str| event["objectRef"][field].as_str().unwrap_or_default();
        let code = &event["responseStatus"]["code"];
        // A refusal without the guard's message would not be a proof, and the run would have refused to start.
        let proof = code == 403 && text("name") == OWN && event["verb"] == "delete";
        if proof {
            used.insert("be-guarded guarded".to_owned());
        }
        assert!(proof || code != 401 && code != 403, "{event}");
        let resource = match text("subresource") {
            "" => text("resource").to_owned(),
            subresource => format!("{}/{subresource}", text("resource")),
        };
        used.insert(format!(
            "{} {resource}",
            event["verb"].as_str().unwrap_or_default()
        ));
    }
    assert_eq!(used, granted);
    cluster.stop();
}
