//! A connection to one broker: asked one thing at a time.

use delivery::AddressRules;
use delivery::dial::{self, Connection};
use keyring::Items;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::sasl::{self, Login, Mechanism};
use super::wire::{self, API_VERSIONS, Api, METADATA, PRODUCE, Reader, SASL_AUTHENTICATE, SASL_HANDSHAKE};
use crate::trust::Trust;

/// Longest answer: where a topic of tens of thousands of partitions is.
const ANSWER_MAX: usize = 4 << 20;

/// How connections are opened.
pub(super) struct Door<'a> {
    pub tls: bool,
    pub rules: &'a AddressRules,
    pub secret: &'a Items,
}

pub(super) struct Link {
    address: String,
    stream: Connection,
    /// Of the last request; the answer repeats it.
    correlation: i32,
}

impl Link {
    /// Connected, and introduced if the variable has a user.
    pub(super) async fn open(address: &str, door: &Door<'_>) -> Result<Link, String> {
        let Some(login) = Login::of(door.secret)? else {
            return Link::connect(address, door, None).await.map(|(link, _)| link);
        };
        let (mut link, offered) = Link::connect(address, door, Some(Mechanism::Sha512)).await?;
        let mut chosen = Mechanism::Sha512;
        if let Some(offered) = offered {
            // The broker ends a connection that has asked for what it does not have.
            chosen = sasl::choose(&offered, door.tls).map_err(|why| format!("{address}: {why}"))?;
            let again;
            (link, again) = Link::connect(address, door, Some(chosen)).await?;
            if again.is_some() {
                return Err(format!("{address}: it offers {} and refuses it", chosen.name()));
            }
        }
        link.introduce(&login, chosen).await?;
        Ok(link)
    }

    /// With the mechanisms that the broker has, if the wanted one is not among them.
    async fn connect(
        address: &str,
        door: &Door<'_>,
        wanted: Option<Mechanism>,
    ) -> Result<(Link, Option<Vec<String>>), String> {
        let stream = dial::connect(address, door.rules).await?;
        let stream: Connection = match door.tls {
            true => dial::secured(stream, address, Trust::of(door.secret).config()?).await?,
            false => Box::new(stream),
        };
        let mut link = Link { address: address.to_string(), stream, correlation: 0 };
        let spoken = link.call(API_VERSIONS, &[]).await?;
        let needed: &[Api] = match wanted {
            None => &[PRODUCE, METADATA],
            Some(_) => &[PRODUCE, METADATA, SASL_HANDSHAKE, SASL_AUTHENTICATE],
        };
        wire::check_versions(&spoken, needed).map_err(|why| format!("{address}: {why}"))?;
        let Some(wanted) = wanted else { return Ok((link, None)) };
        let mut body = wire::Writer::default();
        body.text(wanted.name());
        let answer = link.call(SASL_HANDSHAKE, &body.0).await?;
        let mut read = Reader(&answer);
        let (code, offered) = (read.i16()?, read.list(Reader::text)?);
        match code {
            0 => Ok((link, None)),
            wire::UNSUPPORTED_MECHANISM => Ok((link, Some(offered))),
            code => Err(link.refused(code)),
        }
    }

    async fn introduce(&mut self, login: &Login, mechanism: Mechanism) -> Result<(), String> {
        if mechanism == Mechanism::Plain {
            return self.say(&login.plain()).await.map(drop);
        }
        let conversation = sasl::Scram::begin(login, mechanism)?;
        let challenge = self.say(conversation.first().as_bytes()).await?;
        let (proof, expected) = conversation.answer(&challenge).map_err(|why| self.wrong(&why))?;
        let said = self.say(proof.as_bytes()).await?;
        // A broker that does not know the password is somebody else.
        expected.check(&said).map_err(|why| self.wrong(&why))
    }

    async fn say(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut body = wire::Writer::default();
        body.bytes(message);
        let answer = self.call(SASL_AUTHENTICATE, &body.0).await?;
        let mut read = Reader(&answer);
        let (code, why) = (read.i16()?, read.text()?);
        match (code, why.as_str()) {
            (0, _) => Ok(read.bytes()?.to_vec()),
            (code, "") => Err(self.refused(code)),
            (_, why) => Err(self.wrong(why)),
        }
    }

    fn wrong(&self, why: &str) -> String {
        format!("{}: {why}", self.address)
    }

    fn refused(&self, code: i16) -> String {
        match wire::refusal(code) {
            Some(wire::Refusal::Later(why) | wire::Refusal::Never(why)) => self.wrong(&why),
            None => self.wrong("it answered what was not asked"),
        }
    }

    /// Nobody waits for an answer, so whatever is there to read is that it is closed.
    pub(super) fn is_closed(&mut self) -> bool {
        dial::is_closed(&mut self.stream)
    }

    /// Asks, and waits for the answer. Dropped half-way, it must not be used again.
    pub(super) async fn call(&mut self, api: Api, body: &[u8]) -> Result<Vec<u8>, String> {
        self.correlation = self.correlation.wrapping_add(1);
        let request = wire::framed(api, self.correlation, body);
        let answered = asked(&mut self.stream, &request).await;
        let answered = answered.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.wrong("the connection was closed"),
            _ => self.wrong(&error.to_string()),
        });
        let mut answer = answered?.map_err(|length| {
            self.wrong(&format!("it is no broker of Kafka, or wants TLS: it announced {length} bytes"))
        })?;
        if answer[..4] != self.correlation.to_be_bytes() {
            return Err(self.wrong("it answered what was not asked"));
        }
        Ok(answer.split_off(4))
    }
}

/// The answer behind its length, or what it announced instead of one.
async fn asked(stream: &mut Connection, request: &[u8]) -> std::io::Result<Result<Vec<u8>, i32>> {
    stream.write_all(request).await?;
    stream.flush().await?;
    let announced = stream.read_i32().await?;
    let Some(length) = usize::try_from(announced).ok().filter(|length| (4..=ANSWER_MAX).contains(length))
    else {
        return Ok(Err(announced));
    };
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    Ok(Ok(answer))
}
