//! The responses of the API server that a run reads. They go through the client's public functions, so that nothing is
//! exposed for fuzzing alone. The input is a byte for the request, a byte for the status, a line for the headers `Date`
//! and `Retry-After`, then the bodies of the responses in order, separated by 0xff.
#![no_main]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{HeaderValue, Request, Response, header};
use kube::{Client, client::Body};
use libfuzzer_sys::fuzz_target;
use pod_reaper::{cli::{Cli, PodName}, cluster::{Api as _, Cluster}, explain, settings::Settings, source::{Reader, gather}, stop::Stop};

const STATUS: [u16; 8] = [200, 200, 200, 404, 410, 429, 500, 503];
const NOT_FOUND: &[u8] = br#"{"kind":"Status","reason":"NotFound"}"#;

fuzz_target!(|data: &[u8]| {
    let [question, status, rest @ ..] = data else {
        return;
    };
    let mut lines = rest.splitn(2, |byte| *byte == b'\n');
    let head = lines
        .next()
        .and_then(|line| HeaderValue::from_bytes(line).ok());
    let mut bodies = lines.next().unwrap_or_default().split(|byte| *byte == 0xff);
    let bodies = bodies
        .by_ref()
        .map(<[u8]>::to_vec)
        .rev()
        .collect::<Vec<_>>();
    let bodies = Arc::new(Mutex::new(bodies));
    let status = STATUS[usize::from(*status) % STATUS.len()];
    let serve = move |_: Request<Body>| {
        // No body is left: the server responds with 404 to every further request.
        let answer = match bodies.lock().ok().and_then(|mut bodies| bodies.pop()) {
            Some(body) => (status, body),
            None => (404, NOT_FOUND.to_vec()),
        };
        let head = head.clone();
        async move {
            let mut response = Response::new(Body::from(answer.1));
            *response.status_mut() = http::StatusCode::from_u16(answer.0).unwrap_or_default();
            if let Some(head) = head {
                response.headers_mut().insert(header::DATE, head.clone());
                response.headers_mut().insert(header::RETRY_AFTER, head);
            }
            Ok::<_, Infallible>(response)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let Ok(runtime) = runtime else { return };
    let Ok(cli) = Cli::try_from_args(["pod-reaper".into()]) else {
        return;
    };
    let mut settings = Settings::from(cli);
    settings.all = question % 8 == 1;
    runtime.block_on(async {
        let (_signal, stop) = Stop::manual(Duration::from_secs(480));
        let client = Client::new(tower::service_fn(serve), "default");
        let cluster = Cluster::new(client, stop);
        let reader = Reader::new(&cluster, &settings);
        match question % 8 {
            2 => {
                // Objects become facts, as in a run.
                if let Ok(Some(objects)) = cluster.node("n").await {
                    let _ = objects.into_facts(&settings.policy);
                }
            }
            4 => drop(cluster.pod_uids("n").await),
            5 => {
                let asked = PodName {
                    namespace: "n".to_owned(),
                    name: "n".to_owned(),
                };
                drop(explain::run_on(&cluster, &settings, &asked).await);
            }
            6 => drop(cluster.namespaces().await),
            _ => {
                drop(gather(&reader, None).await);
            }
        }
    });
});
