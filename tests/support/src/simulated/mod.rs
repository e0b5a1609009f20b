//! The simulated API server. It runs in the process of the test, behind the program's own client, with optional faults. It
//! responds as the API server does, and refuses every request that the program has no reason to send.
//!
//! A [`Cluster`] has the objects: [`Objects`] is a list of them, and a test may have its own implementation. A [`Fate`] describes
//! the treatment of a request.

mod dice;
mod fault;
mod labels;
mod objects;
mod printed;
mod request;

use itertools::Itertools as _;
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{Response, header};
use jiff::Timestamp;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

pub use self::{
    dice::Dice,
    fault::{Fate, Fault, Trouble},
    labels::Labels,
    objects::Objects,
    request::{Kind, Request, Resource},
};

/// The objects behind the server.
pub trait Cluster: Send + 'static {
    /// The facts that a client can read from an object.
    type Facts: Clone + Send;

    /// The server's clock, in whole seconds.
    fn now(&self) -> Timestamp;

    /// All objects of a kind, in the order of a list. Objects that `selector` excludes may be missing.
    fn objects(&self, resource: Resource, selector: &str) -> Vec<(Value, Self::Facts)>;

    /// Like [`objects`](Self::objects), from a cache that may be behind.
    fn cached(&self, resource: Resource, selector: &str) -> Vec<(Value, Self::Facts)> {
        self.objects(resource, selector)
    }

    fn object(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
    ) -> Option<(Value, Self::Facts)> {
        let is_it = |(object, _): &(Value, Self::Facts)| {
            let metadata = &object["metadata"];
            metadata["name"] == name && (namespace.is_empty() || metadata["namespace"] == namespace)
        };
        self.objects(resource, "").into_iter().find(is_it)
    }

    /// Called when a request is sent.
    fn sent(&mut self, _: &Request) {}

    /// Called when the request reaches the server, before the response.
    fn received(&mut self, _: &Request) {}

    /// Writes to a pod, unless `takes_effect` is false. Returns the pod after the write, or before a delete.
    fn write(
        &mut self,
        request: &Request,
        takes_effect: bool,
    ) -> Result<(Value, Self::Facts), Refusal>;

    /// Called when a status is sent to the client. A fault may have replaced the server's own status.
    fn answered(&mut self, _: &Request, _status: u16, _fault: Option<Fault>) {}

    /// Called when the server's own response is sent to the client completely.
    fn delivered(&mut self, _: &Request, _: Delivery<Self::Facts>) {}
}

/// The reason why a write is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    NotFound,
    WrongUid,
    WrongVersion,
}

/// A response that a client receives.
#[derive(Debug)]
pub struct Delivery<F> {
    /// The time when the client sent the request, by the test's clock.
    pub asked: Instant,
    /// The time of the response, by the server's clock.
    pub now: Timestamp,
    /// Whether the response has the server's `Date`.
    pub dated: bool,
    pub content: Content<F>,
}

#[derive(Debug)]
pub enum Content<F> {
    /// One object, read or written.
    Object(F),
    /// The object does not exist.
    Absent,
    /// The readable objects of a page, or of the whole list after its last page.
    Page {
        readable: Vec<F>,
        whole: Option<Whole<F>>,
    },
}

#[derive(Debug)]
pub struct Whole<F> {
    pub readable: Vec<F>,
    /// Whether an object could not be read.
    pub malformed: bool,
}

/// The server. Clones share its state.
pub struct Server<C: Cluster>(Arc<Mutex<State<C>>>);

pub struct State<C: Cluster> {
    pub cluster: C,
    /// The maximum number of objects on a page.
    pub page: usize,
    /// Every request, as `GET /path?query`.
    pub requests: Vec<String>,
    /// The same with the time since the start of the server, and with its fault.
    pub trace: Vec<String>,
    /// The names of the faults that occurred.
    pub faults: BTreeSet<String>,
    /// Requests that the program has no reason to send.
    pub not_understood: Vec<String>,
    pub most_at_once: usize,
    at_once: usize,
    began: Instant,
    fate: Box<dyn FnMut(&Request) -> Fate + Send>,
    lists: Vec<List<C::Facts>>,
}

/// A list at the time of its first page. All pages show the list at that time.
struct List<F> {
    items: Vec<(Value, F)>,
    malformed: BTreeSet<usize>,
}

struct Answer<F> {
    status: u16,
    body: Value,
    now: Timestamp,
    means: Means<F>,
}

/// The facts of a response, if it is delivered completely.
enum Means<F> {
    Nothing,
    Object(F),
    Absent,
    Page {
        list: usize,
        from: usize,
        to: usize,
        malformed: Option<usize>,
    },
}

/// Counts the requests in progress, including those that the client aborts.
struct UnderWay<C: Cluster>(Server<C>);

impl<C: Cluster> Drop for UnderWay<C> {
    fn drop(&mut self) {
        self.0.lock().at_once -= 1;
    }
}

impl<C: Cluster> Clone for Server<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: Cluster> Server<C> {
    /// A server without faults.
    pub fn new(cluster: C) -> Self {
        Self::with_faults(cluster, |_| Fate::default())
    }

    /// A server that calls `fate` with each request when it is sent.
    pub fn with_faults(cluster: C, fate: impl FnMut(&Request) -> Fate + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(State {
            cluster,
            page: usize::MAX,
            requests: Vec::new(),
            trace: Vec::new(),
            faults: BTreeSet::new(),
            not_understood: Vec::new(),
            most_at_once: 0,
            at_once: 0,
            began: Instant::now(),
            fate: Box::new(fate),
            lists: Vec::new(),
        })))
    }

    /// Sets the maximum number of objects on a page.
    pub fn page(self, most: usize) -> Self {
        self.lock().page = most;
        self
    }

    /// A client of this server.
    pub fn client(&self) -> Client {
        let server = self.clone();
        Client::new(
            tower::service_fn(move |request| server.clone().serve(request)),
            "default",
        )
    }

    pub fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, request: http::Request<Body>) -> io::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = body
            .collect_bytes()
            .await
            .expect("the client sends it whole");
        let under_way = UnderWay(self.clone());
        let asked = Instant::now();
        let begun = self.lock().begin(&parts, &body);
        let Some((request, fate)) = begun else {
            return Err(io::Error::other("no such request is ever sent"));
        };
        pass(fate.there).await;
        let answer = self.lock().handle(&request, &fate);
        match fate.fault {
            Some(Fault::Hangs(_)) => std::future::pending().await,
            Some(Fault::Lost(_)) => {
                pass(fate.back).await;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            _ => pass(fate.back).await,
        }
        drop(under_way);
        Ok(self.lock().deliver(&request, asked, fate.fault, answer))
    }
}

async fn pass(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

impl<C: Cluster> State<C> {
    fn begin(&mut self, parts: &http::request::Parts, body: &[u8]) -> Option<(Request, Fate)> {
        self.at_once += 1;
        self.most_at_once = self.most_at_once.max(self.at_once);
        let sent = format!("{} {}", parts.method, parts.uri);
        let number = self.requests.len();
        self.requests.push(sent.clone());
        let sent = format!("{} ms: {sent}", self.began.elapsed().as_millis());
        let Some(request) = Request::read(number, parts, body) else {
            self.trace.push(sent.clone());
            self.not_understood.push(sent);
            return None;
        };
        let mut fate = (self.fate)(&request);
        // The first page has no token that could expire.
        fate.fault = fate
            .fault
            .filter(|fault| *fault != Fault::Expired || request.page.is_some());
        self.trace.push(
            fate.fault
                .map_or_else(|| sent.clone(), |fault| format!("{sent} {fault:?}")),
        );
        self.faults.extend(fate.fault.map(Fault::name));
        self.cluster.sent(&request);
        Some((request, fate))
    }

    /// Responds to a request, and applies its effect.
    fn handle(&mut self, request: &Request, fate: &Fate) -> Answer<C::Facts> {
        self.cluster.received(request);
        let now = self.cluster.now();
        let Request {
            namespace, name, ..
        } = request;
        let malformed = fate.fault == Some(Fault::Malformed);
        let (status, body, means) = match request.kind {
            Kind::Delete | Kind::Patch => {
                let takes_effect = fate.fault.is_none_or(Fault::takes_effect);
                match self.cluster.write(request, takes_effect) {
                    Ok((pod, facts)) => {
                        let body =
                            json!({"kind": "PartialObjectMetadata", "metadata": pod["metadata"]});
                        (200, body, Means::Object(facts))
                    }
                    Err(refusal) => {
                        let (status, reason) = refusal.status(request.kind);
                        let message = "the pod is not as it should be";
                        (
                            status,
                            status_object(status, reason, message),
                            Means::Nothing,
                        )
                    }
                }
            }
            Kind::Event => (
                200,
                json!({"kind": "PartialObjectMetadata"}),
                Means::Nothing,
            ),
            kind if kind.is_list() => self.page(request, fate.pick, malformed),
            kind => match self.cluster.object(kind.resource(), namespace, name) {
                Some((mut object, facts)) => {
                    if malformed {
                        object["metadata"]["annotations"] = json!(7);
                    }
                    (200, object, Means::Object(facts))
                }
                None => (
                    404,
                    status_object(404, "NotFound", "not found"),
                    Means::Absent,
                ),
            },
        };
        Answer {
            status,
            body,
            now,
            means,
        }
    }

    fn page(
        &mut self,
        request: &Request,
        pick: usize,
        malformed: bool,
    ) -> (u16, Value, Means<C::Facts>) {
        if request.labels.is_none() {
            return (
                400,
                status_object(400, "BadRequest", "unable to parse requirement"),
                Means::Nothing,
            );
        }
        let (list, from) = request.page.unwrap_or_else(|| {
            let (resource, selector) = (request.kind.resource(), &request.selector);
            // A real cache ignores the limit. Here a list from the cache still has pages, as if the server's cache were not
            // ready.
            let objects = if request.cached {
                self.cluster.cached(resource, selector)
            } else {
                self.cluster.objects(resource, selector)
            };
            let selected = objects
                .into_iter()
                .filter(|(object, _)| request.selects(object));
            let items = selected
                .map(|(object, facts)| (printed::item(request.kind, object), facts))
                .collect();
            self.lists.push(List {
                items,
                malformed: BTreeSet::new(),
            });
            (self.lists.len() - 1, 0)
        });
        let all = &self.lists[list].items;
        // A list without a limit has no pages.
        let most = if request.limit == usize::MAX {
            usize::MAX
        } else {
            self.page.min(request.limit)
        };
        let to = from.saturating_add(most).min(all.len());
        let mut page = all[from..to]
            .iter()
            .map(|(item, _)| item.clone())
            .collect_vec();
        let malformed = (malformed && from < to).then(|| pick % (to - from));
        if let Some(at) = malformed {
            printed::spoil(&mut page[at]);
        }
        let next = if to < all.len() {
            format!("l{list}i{to}")
        } else {
            String::new()
        };
        let body = printed::list(request.kind, &next, page);
        (
            200,
            body,
            Means::Page {
                list,
                from,
                to,
                malformed: malformed.map(|at| from + at),
            },
        )
    }

    /// The response that reaches the client.
    fn deliver(
        &mut self,
        request: &Request,
        asked: Instant,
        fault: Option<Fault>,
        answer: Answer<C::Facts>,
    ) -> Response<Body> {
        let Answer {
            status,
            body,
            now,
            means,
        } = answer;
        let instead = fault.and_then(|fault| fault.instead(status, &body.to_string()));
        let whole = instead.is_none();
        let (status, body) = instead.unwrap_or_else(|| (status, body.to_string()));
        self.cluster.answered(request, status, fault);
        let dated = fault != Some(Fault::NoDate);
        if whole && let Some(content) = self.content(means) {
            self.cluster.delivered(
                request,
                Delivery {
                    asked,
                    now,
                    dated,
                    content,
                },
            );
        }
        let mut response = Response::builder().status(status);
        if dated {
            let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            response = response.header(header::DATE, date);
        }
        if let Some(Fault::Busy(_, Some(seconds))) = fault {
            response = response.header(header::RETRY_AFTER, seconds);
        }
        response
            .body(Body::from(body.into_bytes()))
            .expect("our headers make a response")
    }

    fn content(&mut self, means: Means<C::Facts>) -> Option<Content<C::Facts>> {
        Some(match means {
            Means::Nothing => return None,
            Means::Object(facts) => Content::Object(facts),
            Means::Absent => Content::Absent,
            Means::Page {
                list,
                from,
                to,
                malformed,
            } => {
                let List {
                    items,
                    malformed: all_malformed,
                } = &mut self.lists[list];
                all_malformed.extend(malformed);
                let readable = |range: std::ops::Range<usize>| {
                    let readable = range.filter(|at| !all_malformed.contains(at));
                    readable.map(|at| items[at].1.clone()).collect_vec()
                };
                let whole = (to == items.len()).then(|| Whole {
                    readable: readable(0..to),
                    malformed: !all_malformed.is_empty(),
                });
                Content::Page {
                    readable: readable(from..to),
                    whole,
                }
            }
        })
    }
}

impl Refusal {
    fn status(self, kind: Kind) -> (u16, &'static str) {
        match self {
            Self::NotFound => (404, "NotFound"),
            // A patch sets the UID as a field, which cannot be changed.
            Self::WrongUid if kind == Kind::Patch => (422, "Invalid"),
            Self::WrongUid | Self::WrongVersion => (409, "Conflict"),
        }
    }
}

fn status_object(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    })
}
