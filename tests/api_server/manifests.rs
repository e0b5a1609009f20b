//! Tests `cronjob/` on a real API server: the manifests are applied without a warning, the role has exactly the permissions that
//! a run needs, and the account can do nothing else.

use crate::{
    prelude::*,
    support::installed::{self, BASE, DRY_RUN, as_account, install},
};

/// All directories that can be applied.
const EVERYTHING: [&str; 3] = [DEFAULT, BASE, DRY_RUN];

const CLUSTER_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/pod-reaper";

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

/// A proxy that turns each delete and patch into a dry run, and hides the pods whose delete was accepted. So many runs can be
/// made on one cluster, each as if it were the first.
fn with_no_effect(cluster: &'static ControlPlane) -> Proxy {
    let vault = pod_path("vault", "vault-0");
    let gone = Mutex::new(Vec::<Value>::new());
    Proxy::with_faults(cluster, move |seen| {
        let gone = || gone.lock().expect("no thread has panicked");
        if !seen.is_change() || seen.is_dry() {
            let gone = gone().clone();
            return Act::rewrite(move |reply| {
                let mut list = serde_json::from_slice::<Value>(&reply.body).unwrap_or_default();
                if let Some(items) = list["items"].as_array_mut().filter(|_| !gone.is_empty()) {
                    items.retain(|item| !gone.contains(&item["metadata"]["uid"]));
                    reply.body = list.to_string().into_bytes();
                }
            });
        }
        let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
        let mut body = seen.body.clone();
        if seen.method == "DELETE" {
            if path == vault {
                annotate(cluster, &vault, "example.org/touched", "once");
            }
            body["dryRun"] = json!(["All"]);
        }
        let path = format!("{path}?{query}&dryRun=All");
        let (code, answer) = as_account(cluster, &seen.method, &path, &body);
        if seen.method == "DELETE" && code == 200 {
            gone().push(body["preconditions"]["uid"].clone());
        }
        Act::Instead(code, answer)
    })
}

/// A unit test compares the base with the table of node markers, and `live` has the scheduler place the pod.
#[test]
fn each_is_applied_without_a_warning_and_keeps_the_pod_off_leaf_nodes() {
    let cluster = fresh();
    // A dry run would not create the namespace.
    namespace(&cluster, "pod-reaper");
    let apply = |how: &str, what: &str| {
        let flags = "apply --dry-run=server --validate=strict --warnings-as-errors --output=json";
        let arguments = flags.split(' ').chain([how, what]).collect_vec();
        kubectl(&cluster, &arguments)
    };
    for component in ["guard", "kosmos-guard"] {
        let file = folder(&format!("cronjob/components/{component}/{component}.yaml"));
        apply("-f", &file);
    }
    let placement = |what: &str| {
        let list: Value = serde_json::from_str(&apply("-k", &folder(what))).expect("a list");
        let objects = list["items"].as_array().expect("items");
        let mut templates = objects
            .iter()
            .filter_map(|object| match object["kind"].as_str() {
                Some("CronJob") => Some(&object["spec"]["jobTemplate"]["spec"]["template"]["spec"]),
                Some("Job") => Some(&object["spec"]["template"]["spec"]),
                _ => None,
            });
        let pod = templates.next().expect("a template");
        assert_eq!(templates.next(), None, "{what}");
        let field = |name: &str| pod.get(name).cloned().unwrap_or_default();
        ["affinity", "tolerations", "nodeSelector", "nodeName"].map(field)
    };
    let base = placement(BASE);
    let leaf = yaml("{key: kosmos.io/node, operator: DoesNotExist}");
    assert!(
        base[0].to_string().contains(&leaf.to_string()),
        "{}",
        base[0]
    );
    for what in EVERYTHING {
        assert_eq!(placement(what), base, "{what}");
    }
}

/// The program accepts the shipped settings, and a role without any write is enough for them.
#[test]
fn the_dry_run_overlay_reports_and_is_never_refused() {
    let cluster = fresh();
    everything_stuck(&cluster);
    install(&cluster, DRY_RUN);
    for (right, _) in rights(&cluster.get(CLUSTER_ROLE)) {
        // The guard permission allows nothing by itself.
        let may = ["get ", "list ", "be-guarded "];
        assert!(may.iter().any(|verb| right.starts_with(verb)), "{right}");
    }
    let output = binary(&installed::kubeconfig(&cluster))
        .envs(settings(&cluster))
        .args(SHORT)
        .args(["--output", "json"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["mode"], "dry-run");
    assert_eq!(report["errors"], json!([]));
    assert_eq!(report["summary"]["outcomes"]["would-delete"], ALL);
}

/// `kubectl set env`, a kustomize patch and a value of the chart change an option of the next run, each beside the components
/// that set others. (`chart` tests the value.)
#[test]
fn kubectl_and_a_patch_change_an_option() {
    let cluster = fresh();
    install(&cluster, DEFAULT);
    let is = |name: &str| is_set_to(&settings(&cluster), name);
    assert_eq!(is("REAP_OLDER_THAN").as_deref(), Some("10m"));
    kubectl(
        &cluster,
        &[
            "set",
            "env",
            "cronjob/pod-reaper",
            "--namespace=pod-reaper",
            "REAP_OLDER_THAN=5m",
            "MAX_DELETES=7",
        ],
    );
    for (name, value) in [
        ("REAP_OLDER_THAN", "5m"),
        ("MAX_DELETES", "7"),
        ("EXIT_ON_MANUAL", "true"),
        ("REQUIRE_GUARD", "true"),
    ] {
        assert_eq!(is(name).as_deref(), Some(value), "{name}");
    }
    let patch = "
patches:
- target: {kind: CronJob, name: pod-reaper}
  patch: |
    apiVersion: batch/v1
    kind: CronJob
    metadata: {name: pod-reaper}
    spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: pod-reaper, env: [{name: REAP_OLDER_THAN, value: 20m}]}]}}}}}
";
    for components in [&["eager", "dry-run"], &["dry-run", "eager"]] {
        let file = cluster.dir.join("patched.yaml");
        fs::write(&file, kustomized(DEFAULT, components, patch)).expect("our folder");
        let file = file.display().to_string();
        kubectl(&cluster, &["apply", "--warnings-as-errors", "-f", &file]);
        for (name, value) in [
            ("REAP_OLDER_THAN", "20m"),
            ("DEADLINE", "90s"),
            ("DRY_RUN", "true"),
            ("EXIT_ON_MANUAL", "false"),
            ("REQUIRE_GUARD", "true"),
        ] {
            assert_eq!(is(name).as_deref(), Some(value), "{components:?}: {name}");
        }
    }
}

/// Before Kubernetes 1.30 there are no admission policies. Only the base is installed, so the role is the only restriction.
#[test]
fn the_base_alone_reaps_what_is_stuck_and_nothing_else() {
    let cluster = six_nodes::after_an_hour();
    until_overdue();
    install(&cluster, BASE);
    let pods = || {
        let list = cluster.get("/api/v1/pods");
        let name = |pod: &Value, field: &str| str_of(&pod["metadata"][field]).to_owned();
        let pods = each(&list["items"]);
        pods.map(|pod| (name(pod, "namespace"), name(pod, "name")))
            .collect::<BTreeSet<_>>()
    };
    let before = pods();
    let shipped = settings(&cluster);
    // Two pods need you, so a run ends with 5.
    let variables = shipped
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .chain([("EXIT_ON_MANUAL", "false")])
        .collect_vec();
    // Two pods need you.
    let options = short("--exit-on-manual=false");
    let run = run_with(&installed::kubeconfig(&cluster), &variables, &options);
    run.is_whole();
    let gone = before.difference(&pods()).cloned().collect::<BTreeSet<_>>();
    let stuck = six_nodes::STUCK.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    assert_eq!(gone, BTreeSet::from(stuck));
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
    let granted = rights(&cluster.get(CLUSTER_ROLE)).into_iter();
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

/// Every permission is needed, and a run always reports a missing one.
#[test]
fn without_any_one_right_the_run_reports_it() {
    let cluster = fresh();
    everything_stuck(&cluster);
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    let all = ALL;
    // Each row has the permission, the exit code and the number of deletes without the permission, and the same two if the guard
    // is required.
    let expected = "
        get nodes: 3 none, 3 none
        list nodes: 1 none, 1 none
        list namespaces: 3 none, 3 none
        list pods: 1 none, 1 none
        get pods: 3 all but one, 1 none
        get persistentvolumeclaims: 3 all but two, 3 all but two
        get persistentvolumes: 3 all but two, 3 all but two
        list volumeattachments: 3 all, 3 all
        list csidrivers: 3 all but one, 3 all but one
        delete pods: 3 none, 1 none
        patch pods/status: 3 all but one, 3 all but one
        # The run warns, as `events` tests.
        create events: 0 all, 0 all
        get leases: 3 none, 3 none
        # What still renews another Lease then shows no sign of life, and the report says so.
        list leases: 0 all, 0 all
        # No pod owns a claim.
        get statefulsets: 0 all, 0 all
        # This right is for the guard.
        be-guarded guarded: 0 all, 1 none
    ";
    let expected = expected.trim().lines().map(|line| line.trim().to_owned());
    let expected = expected.filter(|line| !line.starts_with('#'));
    let mut seen = Vec::new();
    let role = cluster.get(CLUSTER_ROLE);
    for (right, left) in rights(&role) {
        cluster.merge_patch(CLUSTER_ROLE, json!({"rules": left}));
        let (verb, resource) = right.split_once(' ').expect("two words");
        let group = match resource {
            "leases" => "coordination.k8s.io",
            "volumeattachments" | "csidrivers" => "storage.k8s.io",
            "events" => "events.k8s.io",
            "statefulsets" => "apps",
            "guarded" => "pod-reaper.io",
            _ => "",
        };
        until("the right is gone", || {
            !may(&cluster, verb, group, resource, "")
        });
        let [without, guarded] = ["false", "true"].map(|require| {
            let proxy = with_no_effect(cluster.server());
            let kubeconfig = proxy.kubeconfig_of(ACCOUNT);
            annotate(
                &cluster,
                &pod_path("vault", "vault-0"),
                "example.org/touched",
                "not yet",
            );
            let output = binary(&kubeconfig)
                .envs([
                    ("REQUIRE_GUARD", require),
                    ("POD_NAMESPACE", "pod-reaper"),
                    ("POD_NAME", OWN),
                ])
                .args(SHORT)
                .args(["--output", "json"])
                .output()
                .expect("it starts");
            let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let deleted = report["summary"]["outcomes"]["deleted"].as_u64();
            let deleted = match usize::try_from(deleted.unwrap_or_default()).unwrap() {
                0 => "none",
                some if some == all => "all",
                some if some + 1 == all => "all but one",
                some if some + 2 == all => "all but two",
                _ => "some",
            };
            format!("{} {deleted}", output.status.code().unwrap_or_default())
        });
        seen.push(format!("{right}: {without}, {guarded}"));
    }
    assert_eq!(BTreeSet::from_iter(seen), expected.collect());
}

/// Requests that a stolen token does not permit.
#[test]
fn the_account_can_do_nothing_else() {
    let cluster = fresh();
    install(&cluster, DEFAULT);
    let kubeconfig = installed::kubeconfig(&cluster).display().to_string();
    // A row that names no namespace applies to all namespaces.
    let cannot = "
        get secrets
        get secrets -n pod-reaper
        list secrets
        get configmaps -n pod-reaper
        create pods/exec
        get pods/exec
        create pods/portforward
        get pods/log
        create pods/eviction
        create pods/ephemeralcontainers
        create pods -n pod-reaper
        watch pods
        update pods
        patch pods
        update pods/status
        deletecollection pods
        delete nodes
        patch nodes
        update nodes/status
        get nodes/proxy
        delete persistentvolumeclaims
        deletecollection persistentvolumeclaims
        patch persistentvolumeclaims
        update persistentvolumeclaims/status
        delete persistentvolumes
        delete volumeattachments.storage.k8s.io
        delete namespaces
        delete jobs.batch
        get events.events.k8s.io
        patch events.events.k8s.io
        create events
        update leases.coordination.k8s.io
        create serviceaccounts/token -n pod-reaper
        bind clusterroles.rbac.authorization.k8s.io
        get validatingadmissionpolicies.admissionregistration.k8s.io
        delete validatingadmissionpolicies.admissionregistration.k8s.io
    ";
    let can = "
        list nodes
        delete pods
        patch pods/status
        create events.events.k8s.io
        list leases.coordination.k8s.io
    ";
    // For an unknown resource, kubectl does not query the server.
    let marked = |resource| may(&cluster, "be-guarded", "pod-reaper.io", resource, "");
    assert_eq!((marked("guarded"), marked("unguarded")), (true, false));
    for (all, says) in [(can, "yes"), (cannot, "no")] {
        for asked in all.trim().lines() {
            let mut words = asked.split_whitespace();
            let (verb, what) = (words.next().unwrap(), words.next().unwrap());
            // `kubectl` would treat the part after a slash as a name.
            let (resource, subresource) = what.split_once('/').unwrap_or((what, ""));
            let subresource = format!("--subresource={subresource}");
            let ask = [
                "--kubeconfig",
                &kubeconfig,
                "auth",
                "can-i",
                verb,
                resource,
                &subresource,
            ];
            let own = words.collect_vec();
            let scope = if own.is_empty() {
                vec!["--all-namespaces"]
            } else {
                own
            };
            let output = cluster.kubectl([&ask[..], &scope].concat());
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(
                said.split_whitespace().next(),
                Some(says),
                "{asked}: {said}"
            );
        }
    }
}
