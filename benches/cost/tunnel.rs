//! A tunnel between a program and the API server that counts bytes. The tunnel does not decode them: TLS and connections are the
//! program's own.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use crate::support::ControlPlane;

/// The traffic since the last [`Tunnel::reset`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed {
    pub connections: u64,
    /// Bytes from the server to the program, with TLS.
    pub received: u64,
    /// When the program sent its first byte.
    pub first: Option<SystemTime>,
}

/// A running tunnel; its threads end with the program.
pub struct Tunnel {
    /// A kubeconfig for clients of the tunnel.
    pub kubeconfig: PathBuf,
    /// The start of its URLs.
    pub url: String,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    received: AtomicU64,
    first: Mutex<Option<SystemTime>>,
}

impl Tunnel {
    /// Starts a tunnel to `cluster`. Bytes that a client sends after a response are delayed by `delay`, which is one round trip.
    /// This also applies to the TLS handshake.
    pub fn start(cluster: &ControlPlane, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = cluster.dir.join(format!("tunnel-{port}.kubeconfig"));
        copy_with_url(&cluster.kubeconfig, &cluster.url, &url, &kubeconfig);
        let server = cluster.url.trim_start_matches("https://").to_owned();
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(&server).expect("the API server listens");
                pipe(client, server, delay, &shared);
            }
        });
        Self {
            kubeconfig,
            url,
            counters,
        }
    }

    pub fn reset(&self) {
        let Counters {
            connections,
            received,
            first,
        } = &*self.counters;
        for counter in [connections, received] {
            counter.store(0, Ordering::SeqCst);
        }
        *first.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn passed(&self) -> Passed {
        let Counters {
            connections,
            received,
            first,
        } = &*self.counters;
        Passed {
            connections: connections.load(Ordering::SeqCst),
            received: received.load(Ordering::SeqCst),
            first: *first.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn copy_with_url(from: &Path, old: &str, new: &str, to: &Path) {
    let text = std::fs::read_to_string(from).expect("it is ours");
    std::fs::write(to, text.replace(old, new)).expect("the folder is ours");
}

fn pipe(client: TcpStream, server: TcpStream, delay: Duration, counters: &Arc<Counters>) {
    counters.connections.fetch_add(1, Ordering::SeqCst);
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("it is a socket");
    }
    // Whether the next bytes of the client are the first after a response.
    let answered = Arc::new(AtomicBool::new(true));
    let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor is left");
    let up = (
        clone(&client),
        clone(&server),
        Arc::clone(counters),
        Arc::clone(&answered),
    );
    thread::spawn(move || {
        let (from, to, counters, answered) = up;
        copy(from, to, |_| {
            counters
                .first
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(SystemTime::now);
            if answered.swap(false, Ordering::SeqCst) {
                thread::sleep(delay);
            }
        });
    });
    let counters = Arc::clone(counters);
    thread::spawn(move || {
        copy(server, client, |bytes| {
            counters.received.fetch_add(bytes, Ordering::SeqCst);
            answered.store(true, Ordering::SeqCst);
        });
    });
}

/// Copies until either side closes.
fn copy(mut from: TcpStream, mut to: TcpStream, mut seen: impl FnMut(u64)) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        seen(read as u64);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
