//! The simulated API server. It runs in the process of the test, behind the program's own client, with optional faults. It
//! responds as the API server does, and refuses every request that the program has no reason to send.
//!
//! A [`Cluster`] has the objects: [`Objects`] is a list of them, and a test may have its own implementation. A [`Fate`] describes
//! the treatment of a request.

mod dice;
mod fault;
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
    objects::Objects,
    request::{Kind, Request},
};

/// The objects behind the server.
pub trait Cluster: Send + 'static {
    /// The server's clock, in whole seconds.
    fn now(&self) -> Timestamp;

    /// All objects of a kind, in the order of a list.
    fn objects(&self, kind: &str) -> Vec<Value>;

    /// Called when a request is sent.
    fn sent(&mut self, _: &Request) {}

    /// Called when the request reaches the server, before the response.
    fn received(&mut self, _: &Request) {}

    /// Writes to a pod or to the history, unless `takes_effect` is false. Returns the object after the write, or before a delete.
    fn write(&mut self, request: &Request, takes_effect: bool) -> Result<Value, Refusal>;

    /// Called when a status is sent to the client. A fault may have replaced the server's own status.
    fn answered(&mut self, _: &Request, _status: u16) {}

    /// Called when the server's own response is sent completely, with the readable objects in it. The client sent the request at
    /// `asked`.
    fn delivered(&mut self, _: &Request, _asked: Instant, _: Vec<Value>) {}
}

/// The status and the reason of a refused write.
pub type Refusal = (u16, &'static str);

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
    /// Whether the program saves the cluster.
    pub saves: bool,
    at_once: usize,
    began: Instant,
    fate: Box<dyn FnMut(&Request) -> Fate + Send>,
    /// The lists, each as it was at the time of its first page.
    lists: Vec<Vec<Value>>,
}

struct Answer {
    status: u16,
    body: Value,
    now: Timestamp,
    /// The readable objects in it.
    objects: Vec<Value>,
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
            saves: false,
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

    /// Lets the program save the cluster.
    pub fn saves(self) -> Self {
        self.lock().saves = true;
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
        let request = Request::read(number, parts, body);
        let Some(request) = request.filter(|it| self.saves || !it.kind.is_only_of_save()) else {
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
    fn handle(&mut self, request: &Request, fate: &Fate) -> Answer {
        self.cluster.received(request);
        let malformed = fate.fault == Some(Fault::Malformed);
        let refused = |(status, reason)| (status, status_object(status, reason, "no"), Vec::new());
        let (status, body, objects) = match request.kind {
            Kind::Delete | Kind::Patch | Kind::DryRun | Kind::Note => {
                let takes_effect =
                    request.kind != Kind::DryRun && fate.fault.is_none_or(Fault::takes_effect);
                let written = self.cluster.write(request, takes_effect);
                written.map_or_else(refused, |pod| {
                    let body =
                        json!({"kind": "PartialObjectMetadata", "metadata": pod["metadata"]});
                    (200, body, vec![pod])
                })
            }
            Kind::Event => (200, json!({"kind": "PartialObjectMetadata"}), Vec::new()),
            kind if kind.is_list() => self.page(request, fate.pick, malformed),
            kind => {
                let mut objects = self.cluster.objects(kind.resource()).into_iter();
                match objects.find(|object| request.names(object)) {
                    Some(object) => {
                        let mut body = object.clone();
                        if malformed {
                            body["metadata"]["annotations"] = json!(7);
                        }
                        (200, body, vec![object])
                    }
                    None => refused((404, "NotFound")),
                }
            }
        };
        Answer {
            status,
            body,
            now: self.cluster.now(),
            objects,
        }
    }

    fn page(
        &mut self,
        request: &Request,
        pick: usize,
        malformed: bool,
    ) -> (u16, Value, Vec<Value>) {
        let (list, from) = request.page.unwrap_or_else(|| {
            let mut objects = self.cluster.objects(request.kind.resource());
            objects.retain(|object| request.selects(object));
            self.lists.push(objects);
            (self.lists.len() - 1, 0)
        });
        let all = &self.lists[list];
        let to = from
            .saturating_add(self.page.min(request.limit))
            .min(all.len());
        let mut readable = all[from..to].to_vec();
        let items = readable
            .iter()
            .map(|object| printed::item(request.kind, object));
        let mut page = items.collect_vec();
        if malformed && from < to {
            let at = pick % (to - from);
            printed::spoil(&mut page[at]);
            readable.remove(at);
        }
        let next = if to < all.len() {
            format!("l{list}i{to}")
        } else {
            String::new()
        };
        (200, printed::list(request.kind, &next, page), readable)
    }

    /// The response that reaches the client.
    fn deliver(
        &mut self,
        request: &Request,
        asked: Instant,
        fault: Option<Fault>,
        answer: Answer,
    ) -> Response<Body> {
        let body = answer.body.to_string();
        let instead = fault.and_then(|fault| fault.instead(answer.status, &body));
        let whole = instead.is_none();
        let (status, body) = instead.unwrap_or((answer.status, body));
        self.cluster.answered(request, status);
        if whole {
            self.cluster.delivered(request, asked, answer.objects);
        }
        let mut response = Response::builder().status(status);
        if fault != Some(Fault::NoDate) {
            let date = answer.now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            response = response.header(header::DATE, date);
        }
        if let Some(Fault::Busy(_, Some(seconds))) = fault {
            response = response.header(header::RETRY_AFTER, seconds);
        }
        response
            .body(Body::from(body.into_bytes()))
            .expect("our headers make a response")
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
