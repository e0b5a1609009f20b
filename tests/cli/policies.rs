//! What the shipped policies refuse. Their expressions are evaluated here as the API server evaluates them, in seconds and without
//! one. `guard` of `tests/api_server` asks a real one, by the same attacks.
//!
//! Each test also expects that every validation of its policies refuses something: none can be lost unnoticed.

use itertools::Itertools as _;
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    rc::Rc,
    sync::Arc,
};

use kube_cel::{
    KubeCelExt as _,
    cel::{
        Context, ResolveResult, Value as Cel,
        extractors::This,
        objects::Key,
        parser::{Expression, Parser},
    },
};
use pod_reaper_test_support::{
    pages,
    samples::{objects, status_patch, with, yaml},
};
use serde_json::{Value, json};

const ACCOUNT: &str = "system:serviceaccount:pod-reaper:pod-reaper";
const NODE_CONTROLLER: &str = "system:serviceaccount:kube-system:node-controller";

/// Whether a user has this right. The account has those of its role, and of a thief that gave it more.
fn may(user: &str, group: &str, resource: &str, verb: &str) -> bool {
    match user {
        "admin" => true,
        // A node that has the marker is a node all the same.
        ACCOUNT | "system:node:marked" => {
            (group, resource, verb) != ("pod-reaper.io", "unguarded", "be-guarded")
        }
        NODE_CONTROLLER => (group, resource, verb) == ("", "pods", "delete"),
        _ => false,
    }
}

fn cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(is) => Cel::Bool(*is),
        Value::Number(number) => Cel::Int(number.as_i64().expect("a whole number")),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(cel).collect_vec().into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), cel(value)));
            fields.collect::<HashMap<_, _>>().into()
        }
    }
}

/// A question to the authorizer is the mapping of what has been said of it.
fn said(asked: &Cel) -> HashMap<Key, Cel> {
    match asked {
        Cel::Map(map) => (*map.map).clone(),
        other => unreachable!("{other:?} is no question"),
    }
}

/// The functions of the API server that the crate does not have.
fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("dyn", |value: Cel| -> ResolveResult { Ok(value) });
    // Only strings are asked for.
    context.add_function("type", |value: Cel| -> ResolveResult {
        let is_text = matches!(value, Cel::String(_));
        Ok(if is_text { "string" } else { "another" }.into())
    });
    context.add_variable_from_value("string", "string");
    for part in ["group", "resource", "namespace", "name"] {
        context.add_function(
            part,
            move |This(asked): This<Cel>, text: Arc<String>| -> ResolveResult {
                let mut asked = said(&asked);
                asked.insert(part.into(), Cel::String(text));
                Ok(asked.into())
            },
        );
    }
    context.add_function(
        "check",
        |This(asked): This<Cel>, verb: Arc<String>| -> bool {
            let asked = said(&asked);
            let of = |part: &str| match asked.get(&Key::from(part)) {
                Some(Cel::String(text)) => text.to_string(),
                _ => String::new(),
            };
            may(&of("user"), &of("group"), &of("resource"), &verb)
        },
    );
    context.add_function("allowed", |This(is): This<bool>| -> bool { is });
    context
}

thread_local! {
    /// Parsing takes longer than evaluating.
    static PARSED: RefCell<HashMap<String, Rc<Expression>>> = RefCell::default();
}

fn evaluate(expression: &Value, context: &Context) -> ResolveResult {
    let text = expression["expression"].as_str().expect("an expression");
    let parse = || {
        let parser = Parser::default().enable_optional_syntax(true);
        Rc::new(parser.parse(text).expect(text))
    };
    let parsed = PARSED.with_borrow_mut(|all| {
        let known = all.entry(text.to_owned()).or_insert_with(parse);
        Rc::clone(known)
    });
    Cel::resolve(&parsed, context)
}

/// The policies of a component.
fn policies(component: &str) -> Vec<Value> {
    let text = pages::read(&format!("cronjob/components/{component}/{component}.yaml"));
    let all = text.split("\n---\n").map(yaml);
    let policies = all
        .filter(|object| object["kind"] == "ValidatingAdmissionPolicy")
        .collect_vec();
    assert!(!policies.is_empty(), "{component} has policies");
    policies
}

/// A request, as policies see it.
#[derive(Default)]
struct Request {
    /// Of `request`. What matters for no expression is left out.
    about: Value,
    object: Value,
    old: Value,
    namespace: Value,
    nodes: Vec<Value>,
}

impl Request {
    fn new(user: &str, operation: &str, resource: &str, of: &Value) -> Self {
        let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let groups: &[&str] = match user.strip_prefix("system:node:") {
            Some(_) => &["system:nodes", "system:authenticated"],
            None => &["system:authenticated"],
        };
        let mut about = json!({"operation": operation, "resource": {"resource": resource}, "dryRun": false, "options": {},
            "userInfo": {"username": user, "groups": groups}});
        for field in ["namespace", "name"] {
            if let Some(text) = of["metadata"].get(field) {
                about[field] = text.clone();
            }
        }
        if !sub.is_empty() {
            about["subResource"] = json!(sub);
        }
        let namespace = namespace(of["metadata"]["namespace"].as_str().unwrap_or_default());
        Self {
            about,
            namespace,
            ..Self::default()
        }
    }

    fn deletes(user: &str, resource: &str, old: &Value, options: &Value) -> Self {
        let mut request = Self::new(user, "DELETE", resource, old);
        request.about["dryRun"] = json!(options["dryRun"].is_array());
        request.about["options"] = options.clone();
        request.old = old.clone();
        request
    }

    fn updates(user: &str, resource: &str, old: &Value, object: Value) -> Self {
        let mut request = Self::new(user, "UPDATE", resource, old);
        (request.old, request.object) = (old.clone(), object);
        request
    }

    fn is_matched(&self, constraints: &Value) -> bool {
        let (resource, sub) = (
            &self.about["resource"]["resource"],
            &self.about["subResource"],
        );
        let full = match sub.as_str() {
            Some(sub) => format!("{}/{sub}", resource.as_str().expect("a name")),
            None => resource.as_str().expect("a name").to_owned(),
        };
        let has = |list: &Value, is: &dyn Fn(&str) -> bool| {
            let list = list.as_array().expect("a list");
            list.iter().any(|item| is(item.as_str().expect("a text")))
        };
        let rules = constraints["resourceRules"].as_array().expect("rules");
        let rule = rules.iter().any(|rule| {
            has(&rule["operations"], &|it| self.about["operation"] == it)
                && has(&rule["resources"], &|it| match it.strip_suffix('*') {
                    Some(start) => full.starts_with(start),
                    None => full == it,
                })
        });
        let selected = &constraints["objectSelector"]["matchExpressions"];
        rule && selected.as_array().into_iter().flatten().all(|asked| {
            assert_eq!(asked["operator"], "Exists");
            let key = asked["key"].as_str().expect("a key");
            let labels = |of: &Value| of["metadata"]["labels"].get(key).is_some();
            labels(&self.old) || labels(&self.object)
        })
    }

    /// What each policy that refuses says first; with an error, that.
    fn refusals(&self, policies: &[Value]) -> BTreeSet<String> {
        let mut refusals = BTreeSet::new();
        for policy in policies {
            let spec = &policy["spec"];
            assert_eq!(spec["failurePolicy"], "Fail");
            if !self.is_matched(&spec["matchConstraints"]) {
                continue;
            }
            let params = match spec.get("paramKind") {
                Some(_) => self.nodes.clone(),
                None => vec![Value::Null],
            };
            for params in params {
                refusals.extend(self.refusal(spec, &params));
            }
        }
        refusals
    }

    fn refusal(&self, spec: &Value, params: &Value) -> Option<String> {
        let mut context = functions();
        let user = json!({"user": self.about["userInfo"]["username"]});
        for (name, value) in [
            ("request", &self.about),
            ("object", &self.object),
            ("oldObject", &self.old),
            ("namespaceObject", &self.namespace),
            ("params", params),
            ("authorizer", &user),
        ] {
            context.add_variable_from_value(name, cel(value));
        }
        let list = |part: &str| spec[part].as_array().cloned().unwrap_or_default();
        for condition in list("matchConditions") {
            match evaluate(&condition, &context) {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => return None,
                Err(error) => return Some(format!("{}: {error}", condition["name"])),
            }
        }
        // One that cannot be evaluated is an error only where it is used, as in the API server.
        let mut variables = HashMap::new();
        for variable in list("variables") {
            context.add_variable_from_value("variables", variables.clone());
            if let Ok(value) = evaluate(&variable, &context) {
                let name = variable["name"].as_str().expect("a name").to_owned();
                variables.insert(name, value);
            }
        }
        context.add_variable_from_value("variables", variables);
        let mut validations = list("validations").into_iter();
        validations.find_map(|validation| match evaluate(&validation, &context) {
            Ok(Cel::Bool(true)) => None,
            Ok(_) => Some(validation["message"].as_str().expect("one").to_owned()),
            Err(error) => Some(format!("{}: {error}", validation["expression"])),
        })
    }
}

/// Holds requests against policies, and what those say.
struct Judge {
    policies: Vec<Value>,
    said: BTreeSet<String>,
}

impl Judge {
    fn of(component: &str) -> Self {
        Self {
            policies: policies(component),
            said: BTreeSet::new(),
        }
    }

    /// `says` is a part of what one of the policies says; nothing: it is allowed.
    fn expect(&mut self, what: &str, request: &Request, says: &str) {
        let refusals = request.refusals(&self.policies);
        let as_expected = match says {
            "" => refusals.is_empty(),
            says => refusals.iter().any(|said| said.contains(says)),
        };
        assert!(as_expected, "{what}: expected {says:?}, not {refusals:?}");
        self.said.extend(refusals);
    }

    /// Each validation has refused something.
    fn every_validation_has_refused(&self) {
        let all = self.policies.iter().flat_map(|policy| {
            let validations = policy["spec"]["validations"].as_array();
            validations.expect("validations").iter()
        });
        for validation in all {
            let message = validation["message"].as_str().expect("a message");
            assert!(self.said.contains(message), "nothing meets: {message}");
        }
    }
}

/// Those that opt out by one mark each are called after it. All have other labels and annotations.
fn namespace(name: &str) -> Value {
    let mut namespace =
        json!({"metadata": {"name": name, "labels": {"a": "b"}, "annotations": {"a": "b"}}});
    if let Some(place) = [("annotated", "annotations"), ("labelled", "labels")]
        .into_iter()
        .find_map(|(it, place)| (it == name).then_some(place))
    {
        namespace["metadata"][place]["pod-reaper.io/skip"] = json!("true");
    }
    namespace
}

fn object(described: &str) -> Value {
    objects(&yaml(described)).pop().expect("its own")
}

fn pod(name: &str, described: &Value) -> Value {
    object(&format!("Pod {name}: {described}"))
}

/// What a strategic merge makes of a status.
fn patched(old: &mut Value, patch: &Value) {
    let (Value::Object(fields), Value::Object(patch)) = (&mut *old, patch) else {
        *old = patch.clone();
        // `$patch: replace` is about the list that it is in.
        if let Some(items) = old.as_array_mut() {
            items.retain(|item| item.get("$patch").is_none());
        }
        return;
    };
    for (key, patch) in patch {
        if patch.is_null() {
            fields.remove(key);
        } else if key == "conditions" {
            let conditions = fields.entry(key).or_insert_with(|| json!([]));
            let conditions = conditions.as_array_mut().expect("a list");
            for patch in patch.as_array().expect("a list") {
                let same = |it: &Value| it["type"] == patch["type"];
                if patch.get("$patch").is_some() {
                    conditions.retain(|it| !same(it));
                } else if let Some(old) = conditions.iter_mut().find(|it| same(it)) {
                    patched(old, patch);
                } else {
                    conditions.push(patch.clone());
                }
            }
        } else {
            patched(fields.entry(key).or_insert(Value::Null), patch);
        }
    }
}

fn fails(user: &str, pod: &Value, more: Value) -> Request {
    let mut object = pod.clone();
    patched(&mut object, &status_patch(pod, more));
    Request::updates(user, "pods/status", pod, object)
}

fn at_once() -> Value {
    yaml("{gracePeriodSeconds: 0, propagationPolicy: Background}")
}

#[test]
fn the_guard_refuses_each_attack_and_nothing_that_the_program_does() {
    let text = include_str!("../data/attacks.yaml").replace("LONG", &"x".repeat(5_000));
    let file = yaml(&text);
    let in_apps = |name: &str, more: &Value| {
        pod(
            &format!("apps/{name}"),
            &with(file["usual"].clone(), more.clone()),
        )
    };
    let pods = file["pods"].as_object().expect("pods");
    let mut pods = pods
        .iter()
        .map(|(name, more)| (format!("apps/{name}"), in_apps(name, more)))
        .collect::<HashMap<_, _>>();
    for namespace in ["annotated", "labelled"] {
        let name = format!("{namespace}/in-there");
        pods.insert(name.clone(), pod(&name, &json!({"grace": 600})));
    }
    let held = pods["apps/held"].clone();
    let mut guard = Judge::of("guard");
    for attack in file["attacks"].as_array().expect("attacks") {
        let says = attack["says"]
            .as_str()
            .unwrap_or("pod-reaper's guard lets it touch only pods that are Terminating already");
        let more = &attack["with"];
        let of = |path: &str| {
            let path = path.split('?').next().unwrap_or_default();
            let parts = path.split('/').skip(4).collect_vec();
            // A collection is deleted pod by pod: one that runs is among them.
            let (name, sub) = (parts.get(2).unwrap_or(&"alive"), parts.get(3));
            (
                pods[&format!("{}/{name}", parts[0])].clone(),
                sub.map(|sub| format!("pods/{sub}")),
            )
        };
        let request = if let Some(path) = attack["delete"].as_str() {
            Request::deletes(ACCOUNT, "pods", &of(path).0, more)
        } else if let Some(path) = attack["patch"].as_str() {
            let (pod, sub) = of(path);
            let mut object = pod.clone();
            patched(&mut object, more);
            Request::updates(ACCOUNT, sub.as_deref().unwrap_or("pods"), &pod, object)
        } else {
            let name = attack["fail"].as_str().expect("a pod");
            fails(ACCOUNT, &pods[&format!("apps/{name}")], more.clone())
        };
        guard.expect(&attack.to_string(), &request, says);
    }
    let opted_in = yaml(
        "{metadata: {annotations: {pod-reaper.io/skip: 'false'}, labels: {pod-reaper.io/skip: 'false'}}}",
    );
    for pod in [&held, &pods["apps/stuck"], &in_apps("opted-in", &opted_in)] {
        let request = Request::deletes(ACCOUNT, "pods", pod, &at_once());
        guard.expect("the program's own delete", &request, "");
    }
    guard.expect("its own patch", &fails(ACCOUNT, &held, json!({})), "");
    for user in [
        "admin",
        NODE_CONTROLLER,
        "system:node:ready-1",
        "system:node:marked",
        "somebody",
    ] {
        let request = Request::deletes(user, "pods", &pods["apps/alive"], &json!({}));
        guard.expect(user, &request, "");
    }
    guard.every_validation_has_refused();
}

#[test]
fn the_kosmos_guard_keeps_the_pods_of_a_leaf_cluster() {
    const REFUSED: &str = "the pods of a Kosmos leaf node";
    let mut guard = Judge::of("kosmos-guard");
    let ordinary = "{node: dead, grace: 600}";
    let taken_up = "{node: dead, grace: 600, metadata: {labels: {kosmos-io/pod: 'true'}}}";
    let by_name = "{node: kosmos-far, grace: 600}";
    for (user, described, deletes) in [
        (NODE_CONTROLLER, ordinary, ""),
        (NODE_CONTROLLER, taken_up, REFUSED),
        (NODE_CONTROLLER, by_name, REFUSED),
        (ACCOUNT, by_name, ""),
        ("admin", taken_up, ""),
        ("system:node:kosmos-far", taken_up, ""),
    ] {
        let pod = pod("apps/p", &yaml(described));
        let what = format!("{user} {described}");
        let delete = Request::deletes(user, "pods", &pod, &at_once());
        guard.expect(&what, &delete, deletes);
        guard.expect(&what, &fails(user, &pod, json!({})), "");
    }
    guard.every_validation_has_refused();
}
