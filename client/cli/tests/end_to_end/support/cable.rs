//! The way of an agent to its servers, which can be cut.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Passes connections on to an address. What it has passed on so far, or that it is cut.
pub struct Cable {
    pub address: SocketAddr,
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Cable {
    pub fn to(target: SocketAddr) -> Cable {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let open: Arc<Mutex<Option<Vec<TcpStream>>>> = Arc::new(Mutex::new(Some(Vec::new())));
        let shared = Arc::clone(&open);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let mut open = shared.lock().unwrap();
                // Whoever comes while it is cut is turned away, as by a host that is gone.
                let Some(streams) = open.as_mut() else { continue };
                let Ok(far) = TcpStream::connect(target) else { continue };
                for (from, into) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                    std::thread::spawn(move || {
                        std::io::copy(&mut from, &mut into).ok();
                        into.shutdown(Shutdown::Both).ok();
                    });
                }
                streams.extend([near, far]);
            }
        });
        Cable { address, open }
    }

    pub fn cut(&self) {
        for stream in self.open.lock().unwrap().take().into_iter().flatten() {
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    pub fn mend(&self) {
        *self.open.lock().unwrap() = Some(Vec::new());
    }
}
