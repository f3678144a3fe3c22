//! Mail: a small server of SMTP, with TLS in both ways, that knows one user.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(super) const USER: &str = "hub";
pub(super) const PASSWORD: &str = "p4ssw0rd-0f-the-m4il";

/// When a server speaks TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Speaks {
    Plain,
    StartTls,
    Implicit,
}

/// A mail as it came.
#[derive(Clone, Debug)]
pub(super) struct Mail {
    pub(super) secure: bool,
    pub(super) logged_in: bool,
    pub(super) from: String,
    pub(super) to: Vec<String>,
    pub(super) head: String,
    pub(super) text: String,
}

impl Mail {
    pub(super) fn header(&self, name: &str) -> String {
        let unfolded = self.head.replace("\r\n ", " ");
        let value = unfolded.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        value.unwrap_or_default().to_owned()
    }
}

/// A server of mail.
pub(super) struct Server {
    pub(super) port: u16,
    /// Whom one has to believe to believe it.
    pub(super) authority: String,
    mails: Arc<Mutex<Vec<Mail>>>,
}

impl Server {
    pub(super) fn start(speaks: Speaks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (authority, config) = certified();
        let mails: Arc<Mutex<Vec<Mail>>> = Arc::default();
        let inbox = mails.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, inbox) = (config.clone(), inbox.clone());
                std::thread::spawn(move || serve(stream, speaks, &config, &inbox));
            }
        });
        Server { port, authority, mails }
    }

    pub(super) fn mails(&self) -> Vec<Mail> {
        self.mails.lock().unwrap().clone()
    }
}

fn certified() -> (String, Arc<ServerConfig>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let of_server =
        CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![of_server.der().clone()], key).unwrap();
    (issuer.pem(), Arc::new(config))
}

fn secured(stream: TcpStream, config: &Arc<ServerConfig>) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream)
}

fn serve(mut stream: TcpStream, speaks: Speaks, config: &Arc<ServerConfig>, inbox: &Mutex<Vec<Mail>>) {
    match speaks {
        Speaks::Implicit => drop(converse(secured(stream, config), true, true, inbox)),
        Speaks::Plain => drop(converse(stream, true, false, inbox)),
        Speaks::StartTls => {
            stream.write_all(b"220 mail.example\r\n").unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                let said: &[u8] = match line.split_whitespace().next() {
                    Some("EHLO") => b"250-mail.example\r\n250 STARTTLS\r\n",
                    Some("STARTTLS") => {
                        stream.write_all(b"220 go on\r\n").unwrap();
                        drop(converse(secured(stream, config), false, true, inbox));
                        return;
                    }
                    _ => b"530 STARTTLS first\r\n",
                };
                stream.write_all(said).unwrap();
                line.clear();
            }
        }
    }
}

/// The conversation, until the other side has had enough.
fn converse(
    stream: impl Read + Write,
    greets: bool,
    secure: bool,
    inbox: &Mutex<Vec<Mail>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let say = |stream: &mut BufReader<_>, line: &str| {
        Write::write_all(stream.get_mut(), format!("{line}\r\n").as_bytes())
    };
    if greets {
        say(&mut stream, "220 mail.example")?;
    }
    let (mut logged_in, mut from, mut to) = (false, String::new(), Vec::new());
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (verb, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        let address = |text: &str| text.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
        match verb {
            "EHLO" => say(
                &mut stream,
                if secure { "250-mail.example\r\n250 AUTH PLAIN LOGIN" } else { "250 mail.example" },
            )?,
            "AUTH" => {
                let wanted = STANDARD.encode(format!("\0{USER}\0{PASSWORD}"));
                logged_in = rest == format!("PLAIN {wanted}");
                // A server that repeats what it was given.
                let refused = format!("535 not with {rest}");
                say(&mut stream, if logged_in { "235 welcome" } else { &refused })?;
            }
            "MAIL" => {
                from = address(rest);
                say(&mut stream, "250 ok")?;
            }
            "RCPT" if rest.contains("nobody") => say(&mut stream, "550 no such user")?,
            "RCPT" => {
                to.push(address(rest));
                say(&mut stream, "250 ok")?;
            }
            "DATA" => {
                say(&mut stream, "354 go on")?;
                let mut data = String::new();
                while !data.ends_with("\r\n.\r\n") && stream.read_line(&mut data)? > 0 {}
                let (head, body) = data.split_once("\r\n\r\n").unwrap();
                let body: String = body.trim_end_matches("\r\n.\r\n").split_whitespace().collect();
                let text = String::from_utf8(STANDARD.decode(body).unwrap()).unwrap();
                let mail = Mail {
                    secure,
                    logged_in,
                    from: from.clone(),
                    to: std::mem::take(&mut to),
                    head: head.into(),
                    text,
                };
                inbox.lock().unwrap().push(mail);
                say(&mut stream, "250 queued as 4711")?;
            }
            "QUIT" => {
                say(&mut stream, "221 bye")?;
                return Ok(());
            }
            _ => say(&mut stream, "500 what?")?,
        }
    }
}
