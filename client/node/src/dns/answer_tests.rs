use std::time::Duration;

use hickory_proto::op::Query;

use super::*;

fn zone() -> Zone {
    zone_with(Vec::new())
}

fn zone_with(recursors: Vec<std::net::SocketAddr>) -> Zone {
    let settings = DnsSettings {
        recursors,
        address: "127.0.0.1:0".parse().unwrap(),
        domain: "service.nomad".into(),
        ttl: Duration::from_secs(5),
    };
    Zone::new(&settings).unwrap()
}

fn request(name: &str, wanted: RecordType) -> Message {
    let mut request = Message::query();
    request.add_query(Query::query(Name::from_ascii(name).unwrap(), wanted));
    request
}

fn instances(count: u8) -> Found {
    let instance =
        |n: u8| Instance { address: format!("10.0.0.{n}"), port: 8000 + u16::from(n), tags: BTreeSet::new() };
    Found::Instances((1..=count).map(instance).collect())
}

fn answer(request: &Message, found: Found, seed: u64) -> Message {
    zone().answer(request, found, &mut Rng::new(seed))
}

#[test]
fn ports_come_with_the_addresses_of_their_hosts() {
    let reply = answer(&request("Web.service.nomad.", RecordType::SRV), instances(2), 1);
    assert_eq!((reply.answers.len(), reply.additionals.len()), (2, 2));
    assert!(reply.metadata.authoritative);
    for record in &reply.answers {
        let RData::SRV(srv) = &record.data else { panic!("{record}") };
        let host = srv.port - 8000;
        assert_eq!(srv.target.to_ascii(), format!("0a0000{host:02x}.addr.service.nomad."));
        let address = reply.additionals.iter().find(|record| record.name == srv.target).unwrap();
        assert_eq!(address.data, RData::A(A::new(10, 0, 0, host as u8)));
        assert_eq!((record.ttl, address.ttl), (5, 5));
    }
    let host =
        Found::Instances(vec![Instance { address: "db.example".into(), port: 1, tags: BTreeSet::new() }]);
    let reply = answer(&request("db.service.nomad.", RecordType::SRV), host.clone(), 1);
    assert!(matches!(&reply.answers[0].data, RData::SRV(srv) if srv.target.to_ascii() == "db.example."));
    let reply = answer(&request("db.service.nomad.", RecordType::A), host, 1);
    assert!(reply.answers.is_empty() && reply.metadata.response_code == ResponseCode::NoError);
}

#[test]
fn the_order_of_instances_is_random() {
    let request = request("web.service.nomad.", RecordType::A);
    let firsts: BTreeSet<String> =
        (0..64).map(|seed| answer(&request, instances(3), seed).answers[0].data.to_string()).collect();
    assert_eq!(firsts.len(), 3, "{firsts:?}");
}

#[test]
fn what_is_not_there_and_what_has_no_such_record_are_told_apart() {
    let asked = request("web.service.nomad.", RecordType::AAAA);
    for (found, code) in [(Found::Absent, ResponseCode::NXDomain), (instances(2), ResponseCode::NoError)] {
        let reply = answer(&asked, found, 1);
        assert_eq!(reply.metadata.response_code, code);
        assert!(reply.answers.is_empty());
        let [authority] = reply.authorities.as_slice() else { panic!("{reply:?}") };
        assert!(matches!(&authority.data, RData::SOA(soa) if soa.minimum == 5), "{authority}");
    }
    let reply = answer(&asked, Found::Unknown, 1);
    assert_eq!(reply.metadata.response_code, ResponseCode::ServFail);
    let reply = answer(&request("service.nomad.", RecordType::SOA), Found::Name, 1);
    assert_eq!(reply.answers.len(), 1);
}

#[test]
fn what_others_know_is_refused() {
    for name in ["example.com.", "nomad.", "."] {
        let code = zone().question(&request(name, RecordType::A)).unwrap_err();
        assert_eq!(code, ResponseCode::Refused, "{name}");
    }
    let mut none = Message::query();
    assert_eq!(zone().question(&none).unwrap_err(), ResponseCode::FormErr);
    none.metadata.op_code = OpCode::Update;
    assert_eq!(zone().question(&none).unwrap_err(), ResponseCode::NotImp);
    let asked = zone().question(&request("V1.Web.Service.NOMAD.", RecordType::A)).unwrap();
    let expected = Asked::Service { namespace: "default".into(), name: "web".into(), tag: Some("v1".into()) };
    assert_eq!(asked, Question::Own(expected));
}

#[test]
fn what_others_know_is_asked_of_them_if_there_are_any() {
    let zone = zone_with(vec!["10.0.0.53:53".parse().unwrap()]);
    for (name, is_own) in [("example.com.", false), (".", false), ("web.service.nomad.", true)] {
        let question = zone.question(&request(name, RecordType::A)).unwrap();
        assert_eq!(question != Question::OfOthers, is_own, "{name}");
    }
    let asked = request("web.service.nomad.", RecordType::A);
    let reply = zone.answer(&asked, instances(1), &mut Rng::new(1));
    assert!(
        reply.metadata.recursion_available && !answer(&asked, instances(1), 1).metadata.recursion_available
    );
}

#[test]
fn what_is_too_large_for_a_datagram_is_marked() {
    let mut asked = request("web.service.nomad.", RecordType::SRV);
    let (few, many) = (answer(&asked, instances(8), 1), answer(&asked, instances(200), 1));
    let sent = Message::from_vec(&datagram(&asked, few.clone()).unwrap()).unwrap();
    assert!(sent.additionals.is_empty() && sent.answers.len() == 8 && !sent.metadata.truncation, "{sent:?}");
    let bytes = datagram(&asked, many.clone()).unwrap();
    let sent = Message::from_vec(&bytes).unwrap();
    assert!(bytes.len() <= 512 && sent.metadata.truncation && sent.answers.is_empty(), "{sent:?}");
    assert!(encoded(&many).unwrap().len() > 512);
    let mut edns = Edns::new();
    edns.set_max_payload(4096);
    asked.edns = Some(edns);
    let sent = Message::from_vec(&datagram(&asked, few).unwrap()).unwrap();
    assert_eq!((sent.answers.len(), sent.additionals.len()), (8, 8));
    let full =
        Found::Instances(vec![Instance { address: "::1".into(), port: 1, tags: BTreeSet::new() }; 9999]);
    assert!(encoded(&answer(&asked, full, 1)).unwrap().len() < usize::from(u16::MAX));
}

/// Whatever arrives: it is read or not, and what was read is answered.
#[test]
fn bad_input_breaks_nothing() {
    let good = request("_web._tcp.prod.ns.service.nomad.", RecordType::SRV).to_vec().unwrap();
    let (zone, mut rng) = (zone(), Rng::new(1));
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next() as u8;
        }
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        let Ok(request) = Message::from_vec(&bytes) else { continue };
        let reply = match zone.question(&request) {
            Ok(_) => zone.answer(&request, instances(3), &mut rng),
            Err(code) => zone.reply(&request, code),
        };
        datagram(&request, reply).unwrap();
    }
}
