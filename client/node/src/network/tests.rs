//! What the kernel does, in a network namespace of the test's own.

use std::io::{Read, Write};
use std::net::{SocketAddr as NetAddress, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::rules::Forward;
use super::*;

/// Set in the process that has the namespaces of its own.
const INSIDE: &str = "SOJOURN_TEST_NAMESPACE";

/// Stands before the address of who asks.
const GREETING: &str = "from ";

/// Runs the test in a process with a network and mounts of its own. Returns true in that process.
fn alone(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: {test} needs root");
        return false;
    }
    let script = "mount -t tmpfs tmpfs /run && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", script, "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && complained.contains("unshare failed") {
        eprintln!("skipped: {test}: this host gives no namespaces: {complained}");
        return false;
    }
    assert!(output.status.success(), "{said}\n{complained}");
    false
}

fn settings() -> NetworkSettings {
    NetworkSettings {
        cni_path: Vec::new(),
        bridge_subnet_v6: Some(Subnet::<Ipv6Addr>::parse("fd00:a110:c8::/112").unwrap()),
        ..NetworkSettings::default()
    }
}

fn alloc_id(number: u32) -> String {
    format!("{number:08x}-8a2e-4b44-9c0a-3c7ab13b9f01")
}

fn request(number: u32, mode: Mode) -> Request {
    let ports = vec![Forward { host: None, host_port: 20000 + number as u16, port: 80 }];
    Request {
        alloc_id: alloc_id(number),
        mode,
        ports,
        isolated: None,
        driver: String::new(),
        hostname: None,
        args: Vec::new(),
    }
}

async fn set_up(networks: &Networks, request: Request) -> Network {
    let id = request.alloc_id.clone();
    networks.begin(request).await.unwrap();
    networks.set_up(&id, None).await.unwrap()
}

#[test]
fn what_nobody_waits_for_any_more_is_not_made() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: what_nobody_waits_for_any_more_is_not_made needs root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let networks = Networks::open(settings(), directory.path().to_path_buf());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let busy = networks.0.work();
    runtime.block_on(async {
        tokio::select! {
            biased;
            begun = networks.begin(request(1, Mode::None)) => panic!("it waits for its turn: {begun:?}"),
            () = std::future::ready(()) => {}
        }
    });
    drop(busy);
    // Waits for its threads.
    drop(runtime);
    assert_eq!(networks.0.all(), []);
}

/// Answers one caller after the other with the address that it is seen with.
fn serve(namespace: &Path) {
    let listener = namespace::within(namespace, || TcpListener::bind("[::]:80")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let peer = stream.peer_addr().unwrap().ip().to_canonical();
            write!(stream, "{GREETING}{peer}").ok();
        }
    });
}

/// What is answered there; `None` if nothing is within a second.
fn ask(address: &str) -> io::Result<Option<String>> {
    let address: NetAddress = address.parse().unwrap();
    let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else {
        return Ok(None);
    };
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(Some(answer.strip_prefix(GREETING).unwrap_or(&answer).to_string()))
}

fn ask_from(network: &Network, address: &str) -> Option<String> {
    namespace::within(&network.namespace, || ask(address)).unwrap()
}

/// An address of the host besides the loopback, and a neighbour with another one, in a namespace of its own.
fn neighbour() -> PathBuf {
    let path = namespace::path("neighbour");
    namespace::create(&path).unwrap();
    let mut links = Links::open().unwrap();
    bridge::loopback_up(&mut links).unwrap();
    links.add_bridge("uplink", [2, 0, 0, 0, 0, 9]).unwrap();
    let uplink = links.find("uplink").unwrap().unwrap();
    bridge::use_addresses_at_once("uplink");
    links.add_address(uplink.index, "192.0.2.1".parse().unwrap(), 24).unwrap();
    links.add_address(uplink.index, "2001:db8::1".parse().unwrap(), 64).unwrap();
    links.set_up(uplink.index).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    links.add_pair("out", uplink.index, "eth0", &file).unwrap();
    let out = links.find("out").unwrap().unwrap();
    links.set_up(out.index).unwrap();
    namespace::within(&path, || {
        let mut links = Links::open()?;
        let own = links.find("eth0")?.unwrap();
        bridge::use_addresses_at_once("eth0");
        links.set_up(own.index)?;
        links.add_address(own.index, "192.0.2.9".parse().unwrap(), 24)?;
        links.add_address(own.index, "2001:db8::9".parse().unwrap(), 64)
    })
    .unwrap();
    path
}

/// Everything of ours that the kernel has: interfaces, namespaces, and tables of packet filters.
fn left() -> (Vec<String>, usize, bool) {
    let links = Links::open().unwrap().all().unwrap();
    let names = links.into_iter().map(|link| link.name);
    let namespaces = std::fs::read_dir(namespace::DIRECTORY).map_or(0, |found| found.count());
    let rules = [nft::Layer::Inet, nft::Layer::Bridge].map(nft::tables);
    (
        names.filter(|name| !["lo", "uplink", "out"].contains(&name.as_str())).collect(),
        namespaces,
        rules.into_iter().flatten().flatten().next().is_some(),
    )
}

#[tokio::test]
async fn allocations_reach_the_world_and_are_reached() {
    if !alone("network::tests::allocations_reach_the_world_and_are_reached") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let outside = neighbour();
    serve(&outside);
    let networks = Networks::open(settings(), base.path().to_path_buf());
    let one = set_up(&networks, request(1, Mode::Bridge)).await;
    let two = set_up(&networks, request(2, Mode::Bridge)).await;
    assert_eq!((one.status.interface.as_str(), one.status.address.as_str()), ("eth0", "172.26.64.2"));
    assert_eq!(
        (two.status.address.as_str(), two.status.address_v6.as_str()),
        ("172.26.64.3", "fd00:a110:c8::3")
    );
    serve(&one.namespace);
    serve(&two.namespace);
    let world = Network { namespace: outside, ..one.clone() };
    let seen = |answer: &str| Some(answer.to_string());
    // Each other, and out into the world with the address of the host.
    assert_eq!(ask_from(&one, "172.26.64.3:80"), seen("172.26.64.2"));
    assert_eq!(ask_from(&one, "[fd00:a110:c8::3]:80"), seen("fd00:a110:c8::2"));
    assert_eq!(ask_from(&one, "192.0.2.9:80"), seen("192.0.2.1"));
    assert_eq!(ask_from(&one, "[2001:db8::9]:80"), seen("2001:db8::1"));
    // From the world, which keeps its address; from the host at its address and at its loopback.
    assert_eq!(ask_from(&world, "192.0.2.1:20001"), seen("192.0.2.9"));
    assert_eq!(ask_from(&world, "[2001:db8::1]:20002"), seen("2001:db8::9"));
    assert_eq!(ask("192.0.2.1:20001").unwrap(), seen("192.0.2.1"));
    assert_eq!(ask("127.0.0.1:20002").unwrap(), seen("172.26.64.1"));
    assert_eq!(ask("172.26.64.2:80").unwrap(), seen("172.26.64.1"));
    // To another one, and to itself, by the port of the host.
    assert_eq!(ask_from(&one, "192.0.2.1:20002"), seen("172.26.64.1"));
    assert_eq!(ask_from(&one, "192.0.2.1:20001"), seen("172.26.64.1"));
    // A port that nobody has, and what listens at the loopback of the host.
    assert_eq!(ask_from(&world, "192.0.2.1:20003"), None);
    networks.tear_down(&alloc_id(2)).await.unwrap();
    assert_eq!(ask("192.0.2.1:20002").unwrap(), None);
    assert_eq!(ask("192.0.2.1:20001").unwrap(), seen("192.0.2.1"));
    networks.tear_down(&alloc_id(1)).await.unwrap();
    assert_eq!(left(), (Vec::new(), 1, false), "only the neighbour is left");
}

#[tokio::test]
async fn isolated_jobs_are_reached_by_ports_of_the_host_only() {
    if !alone("network::tests::isolated_jobs_are_reached_by_ports_of_the_host_only") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    neighbour();
    let networks = Networks::open(settings(), base.path().to_path_buf());
    let of = |number, job: Option<&str>| Request {
        isolated: job.map(str::to_string),
        ..request(number, Mode::Bridge)
    };
    let web = set_up(&networks, of(1, Some("web"))).await;
    let same = set_up(&networks, of(2, Some("web"))).await;
    let other = set_up(&networks, of(3, None)).await;
    let third = set_up(&networks, of(4, None)).await;
    for network in [&web, &same, &other, &third] {
        serve(&network.namespace);
    }
    let reaches =
        |from: &Network, to: &Network| ask_from(from, &format!("{}:80", to.status.address)).is_some();
    assert!(reaches(&web, &same) && reaches(&same, &web));
    assert!(!reaches(&other, &web) && !reaches(&web, &other));
    assert!(reaches(&other, &third));
    assert_eq!(ask_from(&other, "[fd00:a110:c8::2]:80"), None);
    // What it publishes is public, and it reaches what others publish.
    assert_eq!(ask_from(&other, "192.0.2.1:20001").as_deref(), Some("172.26.64.1"));
    assert_eq!(ask_from(&web, "192.0.2.1:20003").as_deref(), Some("172.26.64.1"));
    for number in 1..=4 {
        networks.tear_down(&alloc_id(number)).await.unwrap();
    }
    assert_eq!(left(), (Vec::new(), 1, false));
}

#[tokio::test]
async fn the_next_agent_finds_what_there_is_and_removes_the_rest() {
    if !alone("network::tests::the_next_agent_finds_what_there_is_and_removes_the_rest") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let first = Networks::open(settings(), base.path().to_path_buf());
    let kept = set_up(&first, request(1, Mode::Bridge)).await;
    set_up(&first, request(2, Mode::Bridge)).await;
    set_up(&first, request(3, Mode::None)).await;
    // Begun and not made; and half made, as an agent leaves it that dies in the middle.
    first.begin(request(4, Mode::Bridge)).await.unwrap();
    namespace::create(&namespace::path(&alloc_id(4))).unwrap();
    let another = Networks::open(settings(), base.path().join("elsewhere"));
    let taken = another.begin(request(9, Mode::Bridge)).await.unwrap_err();
    assert!(taken.0.starts_with("bridge \"nomad\" is that of another agent on this host"), "{taken}");
    drop(first);
    bridge::loopback_up(&mut Links::open().unwrap()).unwrap();
    let second = Networks::open(settings(), base.path().to_path_buf());
    second.collect(BTreeSet::from([alloc_id(1)])).await;
    second.begin(request(1, Mode::Bridge)).await.unwrap();
    assert_eq!(second.set_up(&alloc_id(1), None).await.unwrap(), kept);
    serve(&kept.namespace);
    assert_eq!(ask("127.0.0.1:20001").unwrap().as_deref(), Some("172.26.64.1"));
    assert_eq!(left().0, ["nomad".to_string(), bridge::port_name(&alloc_id(1))]);
    drop(second);
    // It does not run, and what it has stays.
    let third = Networks::open(settings(), base.path().join("new"));
    third.collect(BTreeSet::new()).await;
    assert!(ask("127.0.0.1:20001").unwrap().is_some());
    let taken = third.begin(request(9, Mode::Bridge)).await.unwrap_err();
    assert!(taken.0.contains(&format!("with {}", base.path().display())), "{taken}");
    // Its records are lost: what is on the bridge goes.
    for entry in std::fs::read_dir(base.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).ok();
    }
    third.collect(BTreeSet::new()).await;
    assert_eq!(left(), (Vec::new(), 0, false));
}

#[tokio::test]
async fn a_network_that_was_damaged_is_made_anew() {
    if !alone("network::tests::a_network_that_was_damaged_is_made_anew") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let networks = Networks::open(settings(), base.path().to_path_buf());
    let before = set_up(&networks, request(1, Mode::Bridge)).await;
    Links::open().unwrap().remove(&bridge::port_name(&alloc_id(1))).unwrap();
    let after = set_up(&networks, request(1, Mode::Bridge)).await;
    assert_ne!(before.status.address, after.status.address, "the address rests");
    serve(&after.namespace);
    assert!(ask(&format!("{}:80", after.status.address)).unwrap().is_some());
    let alone = set_up(&networks, request(2, Mode::None)).await;
    assert_eq!(alone.status, Status::default());
    let links = namespace::within(&alone.namespace, || Links::open()?.all()).unwrap();
    assert_eq!(links.into_iter().map(|link| link.name).collect::<Vec<_>>(), ["lo"]);
}
