//! You give up the storage of the executor, which is then recreated on another node.

use crate::{
    deployed::USER,
    prelude::*,
    support::installed::{as_user, kubeconfig_of, kustomized, settings_of},
};

const CLAIM: &str = "/api/v1/namespaces/impala-impala01/persistentvolumeclaims/scratch-cache-volume-impala-executor-000-0";

/// The namespace and the name of the installation.
const NAMESPACE: &str = "ops";
const NAME: &str = "night-pod-reaper";
const ACCOUNT: &str = "system:serviceaccount:ops:night-pod-reaper";

/// The shipped CronJob keeps a PVC that nobody declared scratch. After an answer, its account may still not delete the PVC, and
/// the report says which component grants the permission. With that component, a run deletes the PVC.
#[test]
fn an_executor_whose_claim_a_person_gives_up_runs_on_another_node() {
    let case = Case::start();
    let claim = case.get(CLAIM)["metadata"]["uid"].clone();
    let evicted = case.fails(FAILING);
    let old = evicted
        .iter()
        .find(|pod| pod.name == "impala-executor-000-0")
        .expect("it was there");
    let is_untouched = || {
        let found = case.get(CLAIM);
        let metadata = &found["metadata"];
        assert_eq!(
            (&metadata["uid"], metadata.get("deletionTimestamp")),
            (&claim, None)
        );
        assert_eq!(found["status"]["phase"], "Bound");
        assert!(case.evictable_on(FAILING).contains(old), "{old:?}");
    };
    // The PVC is not annotated, so a run keeps it even with all permissions and the option.
    let run = case.reap("--reap-scratch");
    run.says(&old.uid, ("local-volume", None));
    is_untouched();

    // An installation under another name, in another namespace.
    let apply = |components: &[&str]| {
        let lines = "namespace: ops\nnamePrefix: night-\n";
        case.apply(&kustomized(DEFAULT, components, lines));
    };
    apply(&[]);
    let user = json!({"securityContext": {"runAsUser": USER}});
    let spec = json!({"suspend": true, "jobTemplate": {"spec": {"template": {"spec": user}}}});
    let cronjob = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{NAME}");
    case.merge_patch(&cronjob, json!({"spec": spec}));
    let account = kubeconfig_of(&case, NAMESPACE, NAME);
    let may =
        |method: &str, path: &str| as_user(ACCOUNT, &case, method, path, &yaml("{dryRun: [All]}"));
    until("the account may read pods", || {
        may("GET", "/api/v1/pods").0 == 200
    });
    // The container of a scheduled run is simulated, so the test runs the program in its place, with its account and settings.
    let tick = |job: &str| {
        let pod = case.until(&format!("the pod of job {job} runs"), || {
            let mut pods = case.pods().into_iter();
            pods.find(|pod| pod.name.starts_with(&format!("{job}-")) && pod.is_running())
        });
        let settings = settings_of(&case, NAMESPACE, NAME);
        let own = [("POD_NAME", &*pod.name), ("POD_NAMESPACE", NAMESPACE)];
        let variables = settings.iter().map(|(name, value)| (&**name, &**value));
        let variables = variables.chain(own).collect_vec();
        case.reap_with(&account, &variables, &OPTIONS)
    };
    // In the cluster there is no kubeconfig to name, and a user's kubectl uses their own.
    let pasted = |command: &str| {
        let theirs = command.replace(
            &account.display().to_string(),
            &case.kubeconfig.display().to_string(),
        );
        let output = paste(&case, &theirs);
        assert!(output.status.success(), "{theirs}\n{}", shown(&output));
    };
    // A run knows its CronJob by the name that a scheduled Job has.
    let answered = |name: &str| {
        let from = format!("--from=cronjob/{NAME}");
        kubectl(&case, &["create", "job", "-n", NAMESPACE, &from, name]);
        let asks = tick(name);
        asks.ends(5);
        asks.says(&old.uid, ("local-volume", None));
        is_untouched();
        let [answer] = commands(&asks, &old.uid)
            .try_into()
            .expect("one line to paste");
        assert!(answer.starts_with("kubectl annotate pvc "), "{answer}");
        pasted(&answer);
        is_untouched();
        let now = &asks.report["runNow"]["command"];
        let now = now.as_str().expect("a way to have a run at once");
        assert!(
            now.contains(&format!("-n {NAMESPACE} --from=cronjob/{NAME}")),
            "{now}"
        );
        pasted(now);
        let mut words = now.split(' ');
        tick(
            words
                .find(|word| word.starts_with("answers-"))
                .expect("a name"),
        )
    };

    let refused = answered("night-pod-reaper-29854800");
    refused.ends(3);
    refused.says(&old.uid, ("answered", Some("denied")));
    is_untouched();

    let withdrawn = yaml("{metadata: {annotations: {pod-reaper.io/give-up: null}}}");
    case.merge_patch(CLAIM, withdrawn);
    apply(&["answers"]);
    until("the component is in force", || {
        let (_, answer) = may("DELETE", CLAIM);
        let message = answer["message"].as_str().unwrap_or_default();
        message.contains("pod-reaper may delete only PVCs that are annotated")
    });
    let reaped = answered("night-pod-reaper-29854810");
    reaped.ends(0);
    reaped.says(&old.uid, ("answered", Some("deleted")));
    let new = case.until_replaced(std::slice::from_ref(old));
    assert_eq!(new[0].node, "ds04", "the other disk is there");
    let made = case.get(CLAIM);
    assert_ne!(made["metadata"]["uid"], claim);
    assert_eq!(made["spec"]["volumeName"], "disk-of-ds04");
    let events = case.get("/apis/events.k8s.io/v1/namespaces/impala-impala01/events");
    let mut events = each(&events["items"]);
    assert!(
        events.any(|event| event["reason"] == "Answered"
            && event["regarding"]["name"] == "impala-executor-000"),
        "no Event says that it was answered"
    );
}
