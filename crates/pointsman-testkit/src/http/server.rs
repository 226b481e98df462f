//! The threads of the test server.

use std::io::BufReader;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::message::{Fault, Reply, Request};

/// A server on loopback; ends with all its connections when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    answer: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    ended: bool,
    streams: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts one that answers with `answer`, on a thread per connection.
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared { answer: Box::new(answer), open: Mutex::default() });
        let accepted = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut open = accepted.open.lock().unwrap_or_else(PoisonError::into_inner);
                if open.ended {
                    return;
                }
                open.streams.extend(stream.try_clone());
                let shared = Arc::clone(&accepted);
                open.threads.push(std::thread::spawn(move || converse(&shared, stream)));
            }
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let threads = {
            let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.ended = true;
            for stream in &open.streams {
                let _ = stream.shutdown(Shutdown::Both);
            }
            std::mem::take(&mut open.threads)
        };
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        let accepting = self.accepting.take();
        for thread in threads.into_iter().chain(accepting) {
            let _ = thread.join();
        }
    }
}

fn converse(shared: &Shared, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(mut out) = stream.try_clone() else { return };
    let mut requests = BufReader::new(&stream);
    while let Ok(Some(request)) = Request::read(&mut requests) {
        let reply = (shared.answer)(&request);
        match reply.fault {
            Fault::Drop => break,
            Fault::Hang => {
                // Ends when the other side, or the server, ends the connection.
                let _ = Request::read(&mut requests);
                break;
            }
            Fault::None | Fault::CutAfter(_) => {
                if reply.write(&mut out).is_err() {
                    break;
                }
            }
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}
