//! The simulated API server: answers as a real one does, except where the dice say otherwise, and remembers what it
//! has told, so that every write can be judged by what the program could know.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use http::{Method, Request, Response, header, request::Parts};
use jiff::Timestamp;
use kube::client::Body;
use pod_reaper::facts::{Lease, NodeFacts, PodFacts, Ready, VolumeFacts};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    dice::Dice,
    invariants::Rules,
    json,
    world::{Claim, Key, World, Written},
};

/// Selects pods that have no node, and how their rows say so.
const NO_NODE: &str = "<none>";
/// Selects pods whose phase is final: none of those that `UNFINISHED` excludes.
const FINISHED: &str = "<finished>";
const UNFINISHED: &str = "status.phase%21%3DPending,status.phase%21%3DRunning,status.phase%21%3DUnknown";

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Scan,
    Attachments,
    Census,
    Namespaces,
    Places,
    Pods,
    Uids,
    Node,
    Lease,
    Pod,
    Claim,
    Volume,
    Delete,
    Patch,
    /// A look for Warnings.
    Warned,
    /// An Event.
    Event,
}

/// What goes wrong with an answer. A `bool` says whether the request took effect all the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// 429, with `Retry-After` or without.
    Busy(Option<u64>),
    /// A status, said by something in between rather than by the API server where the first flag is set.
    Says(u16, bool, bool),
    Hangs(bool),
    /// The connection ends.
    Lost(bool),
    /// So many milliseconds late.
    Slow(u64),
    /// The body ends too early.
    Cut,
    /// The body is no JSON.
    Garbage,
    /// The body is an object without content.
    Empty,
    NoDate,
    /// 200, and nothing was done.
    NoEffect,
    /// A webhook cannot be called.
    Webhook,
    /// Admission says no.
    Denied(u16),
    /// One object does not parse.
    Odd,
    /// The token of a list's next page has expired.
    Expired,
}

impl Kind {
    pub const ALL: [Self; 16] = [
        Self::Scan,
        Self::Attachments,
        Self::Census,
        Self::Namespaces,
        Self::Places,
        Self::Pods,
        Self::Uids,
        Self::Node,
        Self::Lease,
        Self::Pod,
        Self::Claim,
        Self::Volume,
        Self::Delete,
        Self::Patch,
        Self::Warned,
        Self::Event,
    ];

    pub fn writes(self) -> bool {
        matches!(self, Self::Delete | Self::Patch)
    }

    /// One of the faults that can befall it.
    pub fn fault(self, dice: &mut Dice) -> Fault {
        let effect = dice.permille(500);
        let page = dice.permille(300);
        let slow = 2 * u64::try_from(dice.below(5_500)).unwrap();
        let any = [
            (3, Fault::Busy(None)),
            (2, Fault::Busy(Some(1))),
            (1, Fault::Busy(Some(4))),
            (1, Fault::Busy(Some(3_600))),
            (3, Fault::Says(500, page, effect)),
            (1, Fault::Says(502, true, effect)),
            (4, Fault::Says(503, page, effect)),
            (1, Fault::Says(504, page, effect)),
            (3, Fault::Hangs(effect)),
            (4, Fault::Lost(effect)),
            (6, Fault::Slow(slow)),
            (2, Fault::Cut),
            (2, Fault::Garbage),
            (2, Fault::Empty),
            (2, Fault::NoDate),
            (1, Fault::Says(401, false, false)),
            (2, Fault::Says(403, page, false)),
            (2, Fault::Says(404, true, false)),
            (1, Fault::Says(302, true, false)),
        ];
        let own: &[_] = match self {
            Self::Delete | Self::Patch => {
                &[(4, Fault::NoEffect), (3, Fault::Webhook), (2, Fault::Denied(403)), (2, Fault::Denied(422))]
            }
            Self::Census | Self::Namespaces | Self::Pods | Self::Uids => {
                &[(5, Fault::Odd), (8, Fault::Expired)]
            }
            _ => &[(5, Fault::Odd)],
        };
        dice.weigh(&any.iter().chain(own).copied().collect::<Vec<_>>())
    }
}

/// How much goes wrong in a run.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// Requests with a fault, and requests before which the cluster changes, in a thousand.
    pub faults: usize,
    pub changes: usize,
    /// What befalls every request of a kind.
    pub always: Option<(Kind, Fault)>,
    /// Objects of one page.
    pub page: usize,
    /// Longest way there, and back, in steps of 2 ms: whatever ends a run does so at an odd one, so that no two things
    /// happen at once and a seed repeats its run.
    pub latency: usize,
}

impl Trouble {
    pub fn faulty(&self) -> bool {
        self.faults > 0 || self.always.is_some()
    }
}

/// A look at a node that reached the program.
#[derive(Debug, Clone)]
pub struct Look {
    pub taken: Instant,
    pub date: Timestamp,
    pub facts: NodeFacts,
}

/// What reached the program whole.
#[derive(Debug, Default)]
pub struct Told {
    /// Each node's row: whether it says Ready.
    pub rows: Vec<bool>,
    /// All nodes, as (Ready, leaf, control plane).
    pub census: Option<Vec<(bool, bool, bool)>>,
    /// Some node was seen to be Ready and no leaf.
    pub real_ready: bool,
    /// The first UID told of each node: of the one that was judged.
    pub judged: BTreeMap<String, String>,
    /// The last look at each node.
    pub looks: BTreeMap<String, Look>,
    pub leases: BTreeMap<String, (Instant, Option<Lease>)>,
    pub namespaces: BTreeMap<String, bool>,
    /// Terminating pods by UID and version.
    pub pods: BTreeMap<(String, String), PodFacts>,
    pub claims: BTreeMap<Key, Option<Claim>>,
    pub volumes: BTreeMap<String, Option<VolumeFacts>>,
    /// The last whole list of each node's UIDs.
    pub uids: BTreeMap<String, (Instant, BTreeSet<String>)>,
    lists: Vec<List>,
}

/// A list as it was when its first page was asked for; its later pages come from the same moment.
#[derive(Debug)]
struct List {
    kind: Kind,
    node: String,
    items: Vec<(Value, Item)>,
    odd: BTreeSet<usize>,
}

/// What an item of a list tells.
#[derive(Debug, Clone)]
enum Item {
    Pod(Option<Box<PodFacts>>),
    Uid(String),
    Node(bool, bool, bool),
    Namespace(String, bool),
}

type Tell = Box<dyn FnOnce(&mut Told) + Send>;

/// A write that was sent.
#[derive(Debug)]
pub struct Write {
    pub kind: Kind,
    pub uid: String,
    /// When it changed something.
    pub took_effect: Option<Instant>,
    /// The status that reached the program.
    pub answered: Option<u16>,
    pub denied: bool,
}

pub struct State {
    pub world: World,
    pub told: Told,
    pub rules: Rules,
    pub trouble: Trouble,
    pub writes: Vec<Write>,
    /// The pods that Warnings were about.
    pub warned: BTreeSet<String>,
    pub violations: Vec<String>,
    /// Every request, with its fault.
    pub trace: Vec<String>,
    pub met: BTreeSet<String>,
    pub began: Instant,
    pub most_at_once: usize,
    at_once: usize,
    faults: Dice,
    fate: Dice,
}

/// A request, understood.
#[derive(Debug)]
pub struct Ask {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    /// Number of a list, and of its first item on this page.
    page: Option<(usize, usize)>,
    pub body: Value,
    pub dry: bool,
}

/// A request on its way.
struct Begun {
    ask: Ask,
    fault: Option<Fault>,
    there: Duration,
    back: Duration,
    /// Its number among the writes.
    write: Option<usize>,
}

struct Answer {
    status: u16,
    body: Value,
    tell: Option<Tell>,
}

/// Counts the requests under way, also those that are given up.
struct UnderWay(Arc<Mutex<State>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.0).at_once -= 1;
    }
}

pub fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap()
}

/// Answers one request.
pub async fn serve(state: Arc<Mutex<State>>, request: Request<Body>) -> io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await.unwrap().to_vec();
    let under_way = UnderWay(Arc::clone(&state));
    let begun = lock(&state).begin(&parts, &body);
    let Some(Begun { ask, fault, there, back, write }) = begun else {
        return Err(io::Error::other("no such request is ever sent"));
    };
    sleep(there).await;
    let answer = lock(&state).handle(&ask, fault, write);
    match fault {
        Some(Fault::Hangs(_)) => std::future::pending().await,
        Some(Fault::Lost(_)) => {
            sleep(back).await;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        _ => sleep(back).await,
    }
    drop(under_way);
    Ok(lock(&state).deliver(fault, answer, write))
}

fn milliseconds(steps: usize) -> Duration {
    Duration::from_millis(2 * u64::try_from(steps).unwrap())
}

impl State {
    pub fn new(world: World, rules: Rules, trouble: Trouble, dice: &mut Dice) -> Self {
        Self {
            world,
            told: Told::default(),
            rules,
            trouble,
            writes: Vec::new(),
            warned: BTreeSet::new(),
            violations: Vec::new(),
            trace: Vec::new(),
            met: BTreeSet::new(),
            began: Instant::now(),
            most_at_once: 0,
            at_once: 0,
            faults: dice.fork(),
            fate: dice.fork(),
        }
    }

    /// Understands a request, and chooses what becomes of it and how long its way there and back is.
    fn begin(&mut self, parts: &Parts, body: &[u8]) -> Option<Begun> {
        self.at_once += 1;
        self.most_at_once = self.most_at_once.max(self.at_once);
        let sent = format!("{} ms: {} {}", self.began.elapsed().as_millis(), parts.method, parts.uri);
        let Some(ask) = Ask::read(parts, body) else {
            self.violations.push(format!("nobody may ask this: {sent}"));
            return None;
        };
        let mut fault = None;
        if self.faults.permille(self.trouble.faults) {
            fault = Some(ask.kind.fault(&mut self.faults));
        }
        if let Some((kind, always)) = self.trouble.always
            && kind == ask.kind
        {
            fault = Some(always);
        }
        // A first page has no token that could expire.
        let fault = fault.filter(|fault| *fault != Fault::Expired || ask.page.is_some());
        self.trace.push(fault.map_or_else(|| sent.clone(), |fault| format!("{sent} {fault:?}")));
        if let Some(fault) = fault {
            let name = format!("{fault:?}");
            self.met.insert(name.split('(').next().unwrap_or_default().to_owned());
        }
        let mut there = milliseconds(self.faults.below(self.trouble.latency));
        let back = milliseconds(self.faults.below(self.trouble.latency));
        if let Some(Fault::Slow(late)) = fault {
            there += Duration::from_millis(late);
        }
        let write = ask.kind.writes().then(|| {
            let content_type = parts.headers.get(header::CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
            self.judge(&ask, parts.uri.query(), content_type);
            self.writes.len() - 1
        });
        if matches!(ask.kind, Kind::Warned | Kind::Event) {
            self.judge_event(&ask);
        }
        Some(Begun { ask, fault, there, back, write })
    }

    /// What the server makes of a request, and says. The effect is here.
    fn handle(&mut self, ask: &Ask, fault: Option<Fault>, write: Option<usize>) -> Answer {
        self.world.settle();
        while self.fate.permille(self.trouble.changes) {
            self.world.change(&mut self.fate);
        }
        let nothing_done = matches!(
            fault,
            Some(
                Fault::Busy(_)
                    | Fault::Says(_, _, false)
                    | Fault::Hangs(false)
                    | Fault::Lost(false)
                    | Fault::NoEffect
                    | Fault::Webhook
                    | Fault::Denied(_)
            )
        );
        let Some(write) = write else { return self.look(ask, fault) };
        self.judge_age(ask);
        let key = (ask.namespace.clone(), ask.name.clone());
        let before = self.world.pods.get(&key).cloned();
        let (uid, version) = ask.preconditions();
        let dry = ask.dry || nothing_done;
        let written = match ask.kind {
            Kind::Delete => self.world.delete(&key, uid, version, dry),
            _ => self.world.fail(&key, uid, version, dry),
        };
        let refused = |code, reason| Answer::status(code, reason, "the pod is not as it should be");
        match written {
            Written::NotFound => refused(404, "NotFound"),
            Written::WrongUid if ask.kind == Kind::Patch => refused(422, "Invalid"),
            Written::WrongUid | Written::WrongVersion => refused(409, "Conflict"),
            Written::Done => {
                if !dry {
                    self.writes[write].took_effect = Some(Instant::now());
                }
                let after = self.world.pods.get(&key).cloned().or(before);
                let metadata = after.as_ref().map_or(Value::Null, json::pod_metadata);
                let patched = ask.kind == Kind::Patch;
                Answer::ok(json!({"kind": "PartialObjectMetadata", "metadata": metadata}), move |told| {
                    if let Some(mut pod) = after {
                        // Whoever is told so has to believe it.
                        pod.facts.finished |= patched;
                        told.pod(pod.facts);
                    }
                })
            }
        }
    }

    fn look(&mut self, ask: &Ask, fault: Option<Fault>) -> Answer {
        let odd = fault == Some(Fault::Odd);
        let Ask { namespace, name, .. } = ask;
        let (taken, date) = (Instant::now(), self.world.date());
        let world = &self.world;
        let key = (namespace.clone(), name.clone());
        let not_found = || Answer::status(404, "NotFound", "not found");
        let (name, on_node) = (name.clone(), |pod: &&crate::world::Pod| match name.as_str() {
            NO_NODE => pod.facts.node.is_none(),
            FINISHED => pod.facts.finished,
            name => pod.facts.node.as_deref() == Some(name),
        });
        match ask.kind {
            Kind::Scan => {
                let rows = world.nodes.values().map(|node| {
                    let status = if odd { json!(7) } else { json!(json::node_status(node)) };
                    json!({"cells": [node.facts.name, status, "<none>", "1d", "v1"]})
                });
                let ready = world.nodes.values().map(|node| node.facts.ready == Ready::True);
                let ready = ready.collect::<Vec<_>>();
                let body =
                    json::table(&["Name", "Status", "Roles", "Age", "Version"], &rows.collect::<Vec<_>>());
                Answer::ok(body, move |told| told.rows = ready)
            }
            Kind::Attachments => {
                let rows = world.attachments.iter().map(|(node, attachment)| {
                    let node = if odd { json!(7) } else { json!(node) };
                    let volume = attachment.volume.as_deref().unwrap_or("<unset>");
                    json!({"cells": [attachment.name, "csi.example", volume, node, "true", "1d"]})
                });
                let columns = ["Name", "Attacher", "PV", "Node", "Attached", "Age"];
                Answer::ok(json::table(&columns, &rows.collect::<Vec<_>>()), |_| {})
            }
            Kind::Places => {
                let rows = world.pods.values().map(|pod| {
                    let status = if odd { json!(7) } else { json!(json::pod_status(pod)) };
                    let node = pod.facts.node.as_deref().unwrap_or(NO_NODE);
                    json!({"cells": [pod.facts.name, status, node]})
                });
                let body = json::table(&["Name", "Status", "Node"], &rows.collect::<Vec<_>>());
                Answer::ok(body, |_| {})
            }
            Kind::Census => {
                let items = world.nodes.values().map(|node| {
                    let facts = &node.facts;
                    let ready = facts.ready == Ready::True;
                    (json::node(node), Item::Node(ready, facts.leaf.is_some(), facts.control_plane))
                });
                let items = items.collect();
                self.page(ask, "NodeList", items, odd)
            }
            Kind::Namespaces => {
                let items = world.namespaces.iter().map(|(name, opted_out)| {
                    let json = json!({"metadata": json::namespace_metadata(name, *opted_out)});
                    (json, Item::Namespace(name.clone(), *opted_out))
                });
                let items = items.collect();
                self.page(ask, "PartialObjectMetadataList", items, odd)
            }
            Kind::Pods => {
                let items = world.pods.values().filter(on_node).map(|pod| {
                    (json::pod(pod), Item::Pod(pod.terminating.then(|| Box::new(pod.facts.clone()))))
                });
                let items = items.collect();
                self.page(ask, "PodList", items, odd)
            }
            Kind::Uids => {
                let items = world.pods.values().filter(on_node).map(|pod| {
                    (json!({"metadata": json::pod_metadata(pod)}), Item::Uid(pod.facts.uid.clone()))
                });
                let items = items.collect();
                self.page(ask, "PartialObjectMetadataList", items, odd)
            }
            Kind::Node => {
                let Some(node) = world.nodes.get(&name) else {
                    return not_found().telling(move |told| {
                        told.looks.remove(&name);
                    });
                };
                let facts = node.facts.clone();
                let dated = fault != Some(Fault::NoDate);
                Answer::ok(spoiled(json::node(node), odd), move |told| {
                    // Without the server's clock there is nothing to judge a node by: such a look is none.
                    if !dated {
                        return;
                    }
                    told.judged.entry(name.clone()).or_insert_with(|| facts.uid.clone());
                    told.real_ready |= facts.ready == Ready::True && facts.leaf.is_none();
                    told.looks.insert(name, Look { taken, date, facts });
                })
            }
            Kind::Lease => {
                let node = world.nodes.get(&name);
                let lease = node.and_then(|node| node.facts.lease.clone().ok().flatten());
                match node.and_then(json::lease) {
                    None => not_found().telling(move |told| {
                        told.leases.insert(name, (taken, None));
                    }),
                    Some(json) => Answer::ok(spoiled(json, odd), move |told| {
                        told.leases.insert(name, (taken, lease));
                    }),
                }
            }
            Kind::Pod => {
                let Some(pod) = world.pods.get(&key).cloned() else { return not_found() };
                Answer::ok(spoiled(json::pod(&pod), odd), move |told| {
                    if pod.terminating {
                        told.pod(pod.facts);
                    }
                })
            }
            Kind::Claim => match world.claims.get(&key).cloned() {
                None => not_found().telling(move |told| {
                    told.claims.insert(key, None);
                }),
                Some(claim) => {
                    let json = spoiled(json::claim(&key.0, &key.1, &claim), odd);
                    Answer::ok(json, move |told| {
                        told.claims.insert(key, Some(claim));
                    })
                }
            },
            Kind::Volume => match world.volumes.get(&name).cloned() {
                None => not_found().telling(move |told| {
                    told.volumes.insert(name, None);
                }),
                Some(volume) => Answer::ok(spoiled(json::volume(&volume), odd), move |told| {
                    told.volumes.insert(name, Some(volume));
                }),
            },
            Kind::Warned => Answer::ok(json!({"kind": "EventList", "items": []}), |_| {}),
            Kind::Event => Answer::ok(json!({"kind": "PartialObjectMetadata"}), |_| {}),
            Kind::Delete | Kind::Patch => unreachable!("a write is no look"),
        }
    }

    /// One page of a list.
    fn page(&mut self, ask: &Ask, kind: &str, items: Vec<(Value, Item)>, odd: bool) -> Answer {
        let lists = &mut self.told.lists;
        let (list, from) = ask.page.unwrap_or_else(|| {
            let (node, odd) = (ask.name.clone(), BTreeSet::new());
            lists.push(List { kind: ask.kind, node, items, odd });
            (lists.len() - 1, 0)
        });
        let all = &lists[list].items;
        let to = (from + self.trouble.page).min(all.len());
        let mut page = all[from..to].iter().map(|(json, _)| json.clone()).collect::<Vec<_>>();
        let odd = (odd && from < to).then(|| self.faults.below(to - from));
        if let Some(odd) = odd {
            page[odd] = spoiled(page[odd].take(), true);
        }
        let next = if to < all.len() { format!("l{list}i{to}") } else { String::new() };
        let body = json!({"kind": kind, "metadata": {"continue": next}, "items": page});
        Answer::ok(body, move |told| told.page(list, from, to, odd.map(|odd| from + odd)))
    }

    /// What reaches the program.
    fn deliver(&mut self, fault: Option<Fault>, answer: Answer, write: Option<usize>) -> Response<Body> {
        let Answer { status, body, tell } = answer;
        let body = body.to_string();
        let page = "<html><body>an odd page</body></html>".to_owned();
        let says = |code, reason, message| Some((code, json::status(code, reason, message).to_string()));
        let instead = match fault {
            Some(Fault::Busy(_)) => says(429, "TooManyRequests", "later"),
            Some(Fault::Says(code, true, _)) => Some((code, page)),
            Some(Fault::Says(code, false, _)) => says(code, "Trouble", "no"),
            Some(Fault::Webhook) => {
                says(500, "InternalError", r#"Internal error occurred: failed calling webhook "w": refused"#)
            }
            Some(Fault::Denied(code)) => says(code, "Forbidden", "denied"),
            Some(Fault::Expired) => says(410, "Expired", "too old"),
            Some(Fault::Cut) => Some((status, body[..body.len() / 2].to_owned())),
            Some(Fault::Garbage) => Some((status, page)),
            Some(Fault::Empty) => Some((status, "{}".to_owned())),
            _ => None,
        };
        let whole = instead.is_none();
        let (status, body) = instead.unwrap_or((status, body));
        if let Some(write) = write {
            let write = &mut self.writes[write];
            write.answered = Some(status);
            write.denied = matches!(status, 403 | 422) || fault == Some(Fault::Webhook);
        }
        if whole && let Some(tell) = tell {
            tell(&mut self.told);
        }
        let mut response = Response::builder().status(status);
        if fault != Some(Fault::NoDate) {
            let date = self.world.date().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            response = response.header(header::DATE, date);
        }
        if let Some(Fault::Busy(Some(seconds))) = fault {
            response = response.header(header::RETRY_AFTER, seconds);
        }
        response.body(Body::from(body.into_bytes())).unwrap()
    }
}

impl Told {
    fn pod(&mut self, facts: PodFacts) {
        self.pods.insert((facts.uid.clone(), facts.resource_version.clone()), facts);
    }

    fn page(&mut self, list: usize, from: usize, to: usize, odd: Option<usize>) {
        let list = &mut self.lists[list];
        list.odd.extend(odd);
        let whole = |at: &usize| !list.odd.contains(at);
        let items = |range: std::ops::Range<usize>| {
            range.filter(whole).map(|at| list.items[at].1.clone()).collect::<Vec<_>>()
        };
        let (page, all) = (items(from..to), items(0..list.items.len()));
        let (last, any_odd) = (to == list.items.len(), !list.odd.is_empty());
        let (kind, node) = (list.kind, list.node.clone());
        for item in page {
            if let Item::Pod(Some(facts)) = item {
                self.pod(*facts);
            }
        }
        if !last {
            return;
        }
        match kind {
            Kind::Namespaces => {
                let pair = |item| match item {
                    Item::Namespace(name, opted_out) => Some((name, opted_out)),
                    _ => None,
                };
                self.namespaces = all.into_iter().filter_map(pair).collect();
            }
            Kind::Census if !any_odd => {
                let node = |item: &Item| match item {
                    Item::Node(ready, leaf, control_plane) => Some((*ready, *leaf, *control_plane)),
                    _ => None,
                };
                self.census = Some(all.iter().filter_map(node).collect());
            }
            Kind::Uids if !any_odd => {
                let uid = |item| match item {
                    Item::Uid(uid) => Some(uid),
                    _ => None,
                };
                self.uids.insert(node, (Instant::now(), all.into_iter().filter_map(uid).collect()));
            }
            _ => {}
        }
    }
}

impl Answer {
    fn ok(body: Value, tell: impl FnOnce(&mut Told) + Send + 'static) -> Self {
        Self { status: 200, body, tell: Some(Box::new(tell)) }
    }

    fn status(code: u16, reason: &str, message: &str) -> Self {
        Self { status: code, body: json::status(code, reason, message), tell: None }
    }

    fn telling(self, tell: impl FnOnce(&mut Told) + Send + 'static) -> Self {
        Self { tell: Some(Box::new(tell)), ..self }
    }
}

/// With a field of a type that it cannot have, where that is wanted.
fn spoiled(mut json: Value, odd: bool) -> Value {
    if odd {
        json["metadata"]["annotations"] = json!(7);
    }
    json
}

impl Ask {
    /// UID and resource version that a write carries.
    pub fn preconditions(&self) -> (&str, &str) {
        let at = if self.kind == Kind::Delete { &self.body["preconditions"] } else { &self.body["metadata"] };
        (at["uid"].as_str().unwrap_or_default(), at["resourceVersion"].as_str().unwrap_or_default())
    }

    fn read(parts: &Parts, body: &[u8]) -> Option<Self> {
        let accept = parts.headers.get(header::ACCEPT)?.to_str().ok()?;
        let (table, metadata) = (accept.contains("as=Table"), accept.contains("as=PartialObjectMetadata"));
        let query = parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let query = query.filter_map(|pair| pair.split_once('=')).collect::<BTreeMap<_, _>>();
        let path = parts.uri.path().trim_start_matches('/').split('/').collect::<Vec<_>>();
        let get = parts.method == Method::GET;
        let selected =
            query.get("fieldSelector").and_then(|field| match field.strip_prefix("spec.nodeName%3D") {
                Some("") => Some(NO_NODE),
                None if *field == UNFINISHED => Some(FINISHED),
                node => node,
            });
        let rows =
            table && query.get("includeObject") == Some(&"None") && query.get("limit") == Some(&"1000");
        let list = !table && query.get("limit") == Some(&"500");
        let (kind, namespace, name) = match path[..] {
            ["api", "v1", "nodes"] if get && rows => (Kind::Scan, "", ""),
            ["api", "v1", "nodes"] if get && list && !metadata => (Kind::Census, "", ""),
            ["apis", "storage.k8s.io", "v1", "volumeattachments"] if get && rows => {
                (Kind::Attachments, "", "")
            }
            ["api", "v1", "namespaces"] if get && list && metadata => (Kind::Namespaces, "", ""),
            ["api", "v1", "pods"] if get && rows => (Kind::Places, "", ""),
            ["api", "v1", "pods"] if get && list => {
                let kind = if metadata { Kind::Uids } else { Kind::Pods };
                (kind, "", selected?)
            }
            ["api", "v1", "nodes", name] if get => (Kind::Node, "", name),
            ["apis", "coordination.k8s.io", "v1", "namespaces", "kube-node-lease", "leases", name] if get => {
                (Kind::Lease, "", name)
            }
            ["api", "v1", "namespaces", namespace, "pods", name] if get => (Kind::Pod, namespace, name),
            ["api", "v1", "namespaces", namespace, "persistentvolumeclaims", name] if get => {
                (Kind::Claim, namespace, name)
            }
            ["api", "v1", "persistentvolumes", name] if get => (Kind::Volume, "", name),
            ["api", "v1", "namespaces", namespace, "pods", name] if parts.method == Method::DELETE => {
                (Kind::Delete, namespace, name)
            }
            ["api", "v1", "namespaces", namespace, "pods", name, "status"]
                if parts.method == Method::PATCH =>
            {
                (Kind::Patch, namespace, name)
            }
            ["apis", "events.k8s.io", "v1", "namespaces", namespace, "events"] if get && list => {
                (Kind::Warned, namespace, "")
            }
            ["apis", "events.k8s.io", "v1", "namespaces", namespace, "events"]
                if parts.method == Method::POST =>
            {
                (Kind::Event, namespace, "")
            }
            _ => return None,
        };
        let page = query.get("continue").map(|token| {
            let (list, item) = token.strip_prefix('l')?.split_once('i')?;
            Some((list.parse().ok()?, item.parse().ok()?))
        });
        let page = match page {
            None => None,
            Some(page) => Some(page?),
        };
        let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).ok()? };
        let dry = if kind == Kind::Patch {
            query.get("dryRun") == Some(&"All")
        } else {
            body["dryRun"] == json!(["All"])
        };
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Some(Self { kind, namespace, name, page, body, dry })
    }
}
