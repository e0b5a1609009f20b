//! An installation next to other workloads: in a namespace that is not its own, under a name prefix, with each component. Tests
//! what it leaves behind, and what platforms refuse. The refusal comes from the platform's own plugin, or from a policy that does
//! the same.
//!
//! The controllers do not run here: `live::deployed` removes a namespace, a Job and its pods.

use crate::{
    chart::{COMPONENTS, borrowed, custom_kinds, rendered},
    prelude::*,
};

const SHARED: &str = "monitoring";

/// All objects of the cluster, except those that the server itself writes as time passes.
fn everything(cluster: &ControlPlane) -> BTreeSet<String> {
    let kinds = kubectl(
        cluster,
        &["api-resources", "--verbs=list,delete", "--output=name"],
    );
    let passing = |kind: &&str| !kind.starts_with("events") && !kind.starts_with("leases");
    let kinds = kinds.lines().filter(passing).join(",");
    let path = "--output=jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
    kubectl(cluster, &["get", &kinds, "--all-namespaces", path])
        .lines()
        .map(str::to_owned)
        .collect()
}

fn file(cluster: &ControlPlane, manifests: &str) -> String {
    let file = cluster.dir.join("platforms.yaml");
    fs::write(&file, manifests).expect("our folder");
    file.display().to_string()
}

/// The base and its guard in a namespace with other workloads, with these components and further lines.
fn shared(components: &[&str], lines: &str) -> String {
    kustomized(
        "cronjob/base",
        &[&["guard"], components].concat(),
        &format!("namespace: {SHARED}\n{lines}"),
    )
}

/// Whatever is installed, and however: other pods and labels in the namespace stay as they are, the guard is in force, a run
/// reaps, and removal leaves nothing behind.
#[test]
fn it_comes_runs_and_goes_in_a_namespace_of_others() {
    let chart = |values: &str| rendered("night-shift", SHARED, &["--no-hooks", "--set", values]);
    let alone =
        COMPONENTS.map(|component| (component.to_owned(), shared(&[component], ""), "pod-reaper"));
    let all = [
        ("all".to_owned(), shared(&COMPONENTS, ""), "pod-reaper"),
        (
            "all under a prefix".into(),
            shared(&COMPONENTS, "namePrefix: acme-\n"),
            "acme-pod-reaper",
        ),
        (
            "by the chart".into(),
            chart("image.repository=a"),
            "night-shift-pod-reaper",
        ),
        (
            "all by the chart".into(),
            chart(
                "fullnameOverride=grim,eager.enabled=true,\
                 kosmosGuard.enabled=true,\
                 prometheusRule.enabled=true,\
                 commonLabels.team=platform",
            ),
            "grim",
        ),
    ];
    let cluster = fresh();
    custom_kinds(&cluster);
    one_is_stuck(&cluster);
    namespace(&cluster, SHARED);
    let theirs = format!("Pod {SHARED}/theirs: {{node: ready-1, grace: null}}");
    let mut theirs = make(&cluster, &theirs).remove(0);
    theirs["spec"]["hostNetwork"] = json!(true);
    theirs["metadata"] = yaml("{name: privileged}");
    let theirs = theirs.as_object_mut().expect("a pod");
    theirs.remove("status");
    cluster.create(&format!("/api/v1/namespaces/{SHARED}/pods"), json!(theirs));
    let labels =
        || cluster.get(&format!("/api/v1/namespaces/{SHARED}"))["metadata"]["labels"].clone();
    let labels_before = labels();
    for (how, manifests, name) in all.into_iter().chain(alone) {
        if cluster.try_get(STUCK).is_none() {
            make(&cluster, "Pod apps/stuck: {}");
            crate::until_overdue();
        }
        // All rounds together may take longer than a node may be without a heartbeat before it is silent.
        renew_lease(&cluster, "ready-1");
        let before = everything(&cluster);
        let manifests = file(&cluster, &manifests);
        let arguments = [
            "apply",
            "--server-side",
            "--warnings-as-errors",
            "--validate=strict",
            "-f",
            &manifests,
        ];
        kubectl(&cluster, &arguments);
        own_pod(&cluster, SHARED);
        let account = format!("system:serviceaccount:{SHARED}:{name}");
        until("the guard is in force", || {
            is_guarded(&cluster, &account, SHARED)
        });
        let others = pod_path(SHARED, "privileged");
        assert_eq!(rehearsed(&account, &cluster, &others).0, 403, "{how}");
        let mut variables = settings_of(&cluster, SHARED, name);
        variables.push(("POD_NAMESPACE".into(), SHARED.into()));
        variables.push(("POD_NAME".into(), OWN.into()));
        // No CA certificate is mounted here.
        variables.retain(|(name, _)| name != "SSL_CERT_FILE");
        let kubeconfig = kubeconfig_of(&cluster, SHARED, name);
        let run = run_with(&kubeconfig, &borrowed(&variables), &SHORT);
        run.ends(0);
        assert_eq!(run.report["guard"], "proved", "{how}");
        assert_eq!(run.report["summary"]["outcomes"]["deleted"], 1, "{how}");

        assert_eq!(labels(), labels_before, "{how}");
        kubectl(&cluster, &["delete", "-f", &manifests]);
        for own in [OWN.to_owned(), format!("{name}-of-the-token")] {
            cluster.delete(&pod_path(SHARED, &own), yaml("{gracePeriodSeconds: 0}"));
        }
        let after = everything(&cluster);
        let gone = BTreeSet::from(["Pod apps/stuck".to_owned()]);
        assert_eq!(
            after.difference(&before).collect_vec(),
            Vec::<&String>::new(),
            "{how}: left behind"
        );
        assert_eq!(
            before.difference(&after).cloned().collect::<BTreeSet<_>>(),
            gone,
            "{how}: taken away"
        );
        cluster
            .try_get(&format!("/api/v1/namespaces/{SHARED}"))
            .expect("their namespace");
    }
}

/// Whether the API server admits the pod of a run of these manifests, and its message if not.
fn admitted(
    cluster: &ControlPlane,
    manifests: &str,
    change: impl FnOnce(&mut Value),
) -> Result<(), String> {
    let all: Vec<Value> = serde_saphyr::from_multiple(manifests).expect("YAML");
    let cronjob = all
        .iter()
        .find(|object| object["kind"] == "CronJob")
        .expect("a CronJob");
    let template = &cronjob["spec"]["jobTemplate"]["spec"]["template"];
    let namespace = str_of(&cronjob["metadata"]["namespace"]);
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["name"] = json!("run");
    change(&mut pod);
    let (code, answer) = cluster.request(
        "POST",
        &format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"),
        Some(pod),
    );
    if code == 201 {
        Ok(())
    } else {
        Err(answer["message"].as_str().unwrap_or_default().to_owned())
    }
}

/// Creates a policy for pods, and waits until it refuses `refused`.
fn policy(cluster: &ControlPlane, expression: &str, refused: impl Fn() -> bool) {
    let policy = format!(
        "
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicy
        metadata: {{name: platform}}
        spec:
            matchConstraints:
                resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]
            validations:
            - message: the platform says no
              expression: |
                {expression}
        "
    );
    cluster.create(
        &format!("{ADMISSION}/validatingadmissionpolicies"),
        yaml(&policy),
    );
    let binding = "
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicyBinding
        metadata: {name: platform}
        spec: {policyName: platform, validationActions: [Deny]}
    ";
    let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
    cluster.create(&bindings, yaml(binding));
    until("it is in force", refused);
}

/// The patch that docs/platforms.md names for GKE Autopilot.
const WITHOUT_AFFINITY: &str = "
patches:
- target: {kind: CronJob}
  patch: |
    - {op: remove, path: /spec/jobTemplate/spec/template/spec/affinity/nodeAffinity}
";

/// Each of these platforms refused what 0.2.0 installed.
#[test]
fn what_a_platform_refuses_can_be_left_out() {
    let as_shipped = |_: &mut Value| {};
    let shipped = kustomized("cronjob", &[], "");
    for (expression, green, red, change) in [
        // OpenShift: the user must be in the namespace's range, or be omitted, in which case OpenShift sets it.
        (
            "!has(object.spec.securityContext.runAsUser) || object.spec.securityContext.runAsUser >= 1000650000",
            kustomized("cronjob", &[], ""),
            &shipped,
            (|pod| pod["spec"]["securityContext"]["runAsUser"] = json!(65532)) as fn(&mut Value),
        ),
        // GKE Autopilot: node affinity may not use labels of other projects.
        (
            "!has(object.spec.affinity.nodeAffinity)",
            kustomized("cronjob", &[], WITHOUT_AFFINITY),
            &shipped,
            as_shipped,
        ),
        // A policy engine that requires labels on everything.
        (
            "has(object.metadata.labels) && 'team' in object.metadata.labels",
            rendered(
                "pod-reaper",
                "pod-reaper",
                &["--set", "commonLabels.team=platform"],
            ),
            &shipped,
            as_shipped,
        ),
        (
            "object.spec.containers.all(c, c.image.startsWith('mirror.example/'))",
            rendered(
                "pod-reaper",
                "pod-reaper",
                &["--set", "image.registry=mirror.example"],
            ),
            &shipped,
            as_shipped,
        ),
    ] {
        let cluster = fresh();
        namespace(&cluster, "pod-reaper");
        kubectl(
            &cluster,
            &[
                "create",
                "serviceaccount",
                "--namespace=pod-reaper",
                "pod-reaper",
            ],
        );
        let refused = || {
            admitted(&cluster, red, change).is_err_and(|said| said.contains("the platform says no"))
        };
        policy(&cluster, expression, refused);
        assert_eq!(
            admitted(&cluster, &green, as_shipped),
            Ok(()),
            "{expression}"
        );
    }
}

/// The API server of GKE has this configuration.
#[test]
fn the_quota_lets_the_priority_class_in() {
    let config = "
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes:
      - {scopeName: PriorityClass, operator: In, values: [system-node-critical, system-cluster-critical]}
";
    let dir = tempfile::TempDir::new().expect("a folder");
    let path = dir.path().join("admission.yaml");
    fs::write(&path, config).expect("our folder");
    let flag = format!("--admission-control-config-file={}", path.display());
    let cluster = ControlPlane::start(&[&flag]).unwrap_or_else(|message| panic!("{message}"));
    let shipped = kustomized("cronjob", &[], "");
    let chart = rendered(
        "pod-reaper",
        "pod-reaper",
        &["--set", "resourceQuota.enabled=true"],
    );
    namespace(&cluster, "pod-reaper");
    let said = admitted(&cluster, &shipped, |_| {}).expect_err("there is no quota");
    assert!(
        said.contains("insufficient quota to match these scopes"),
        "{said}"
    );
    for (how, manifests) in [("by kustomize", &shipped), ("by the chart", &chart)] {
        kubectl(&cluster, &["apply", "-f", &file(&cluster, manifests)]);
        // The quota controller would write this, but does not run here.
        let quota = "/api/v1/namespaces/pod-reaper/resourcequotas/pod-reaper";
        let hard = cluster.get(quota)["spec"]["hard"].clone();
        cluster.patch_status(quota, json!({"hard": hard, "used": {"pods": "0"}}));
        until(how, || admitted(&cluster, manifests, |_| {}).is_ok());
        cluster.delete(quota, json!({}));
        until("there is no quota", || {
            admitted(&cluster, manifests, |_| {}).is_err()
        });
    }
    // A tenant's namespace works without the class.
    let without = rendered("pod-reaper", "pod-reaper", &["--set", "priorityClassName="]);
    assert_eq!(admitted(&cluster, &without, |_| {}), Ok(()));
    cluster.stop();
}
