use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::*;

/// A metadata service with these answers by method and path, and what it was asked.
async fn service(answers: &[(&str, &str)]) -> (String, Arc<Mutex<Vec<String>>>) {
    let answers: BTreeMap<String, String> =
        answers.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let (mut request, mut line) = (String::new(), String::new());
            while stream.read_line(&mut line).await.unwrap() > 2 {
                request.push_str(&std::mem::take(&mut line));
            }
            let what = request.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_string();
            seen.lock().unwrap().push(request);
            let (status, body) = match answers.get(&what) {
                Some(body) => ("200 OK", body.as_str()),
                None => ("404 Not Found", ""),
            };
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, asked)
}

fn probes(cloud: &str, address: &str) -> Probes {
    let address = Some(address.to_string());
    [(cloud.to_string(), Probe { address, ..Probe::default() })].into()
}

async fn found(cloud: &str, address: &str) -> Result<Found, String> {
    let nowhere = tempfile::tempdir().unwrap();
    find(&probes(cloud, address), nowhere.path(), |_| true).await
}

fn attributes(expected: &[(&str, &str)]) -> Attributes {
    expected.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[tokio::test]
async fn aws_is_asked_with_a_token() {
    let (address, asked) = service(&[
        ("PUT /latest/api/token", "t0ken"),
        ("GET /latest/meta-data/placement/availability-zone", "eu-central-1a"),
        ("GET /latest/meta-data/instance-id", "i-1"),
        ("GET /latest/meta-data/instance-type", "m5.large\n"),
        ("GET /latest/meta-data/local-ipv4", "10.0.0.7"),
    ])
    .await;
    let found = found("env_aws", &address).await.unwrap();
    let expected = attributes(&[
        ("platform.aws.instance-type", "m5.large"),
        ("platform.aws.placement.availability-zone", "eu-central-1a"),
        ("unique.platform.aws.instance-id", "i-1"),
        ("unique.platform.aws.local-ipv4", "10.0.0.7"),
    ]);
    assert_eq!(found.attributes, expected);
    assert_eq!(found.links, [("aws.ec2".to_string(), "eu-central-1a.i-1".to_string())].into());
    let asked = asked.lock().unwrap();
    assert!(
        asked.iter().skip(1).all(|request| request.contains("x-aws-ec2-metadata-token: t0ken")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn gce_names_networks_tags_and_what_the_operator_has_set() {
    let script = "x".repeat(VALUE_BYTES_MAX + 1);
    let set = format!(r#"{{"role": "web", "unique.rack": "r1", "startup-script": "{script}"}}"#);
    let (address, asked) = service(&[
        ("GET /id", "42"),
        ("GET /zone", "projects/1/zones/europe-west1-b"),
        ("GET /machine-type", "projects/1/machineTypes/n1-standard-1"),
        ("GET /tags", r#"["http", "unique.one"]"#),
        ("GET /attributes/?recursive=true", &set),
        (
            "GET /network-interfaces/?recursive=true",
            r#"[{"network": "projects/1/networks/default", "ip": "10.1.0.2", "accessConfigs": [{"externalIp": "192.0.2.1"}]}]"#,
        ),
    ])
    .await;
    let found = found("env_gce", &address).await.unwrap();
    let expected = attributes(&[
        ("platform.gce.attr.role", "web"),
        ("platform.gce.machine-type", "n1-standard-1"),
        ("platform.gce.network.default", "true"),
        ("platform.gce.tag.http", "true"),
        ("platform.gce.zone", "europe-west1-b"),
        ("unique.platform.gce.attr.rack", "r1"),
        ("unique.platform.gce.id", "42"),
        ("unique.platform.gce.network.default.external-ip.0", "192.0.2.1"),
        ("unique.platform.gce.network.default.ip", "10.1.0.2"),
        ("unique.platform.gce.tag.one", "true"),
    ]);
    assert_eq!(found.attributes, expected, "a start-up script is no attribute");
    assert!(asked.lock().unwrap().iter().all(|request| request.contains("metadata-flavor: Google")));
}

#[tokio::test]
async fn azure_says_all_in_one_answer_and_digitalocean_in_many() {
    let machine = r#"{"compute": {"vmId": "v-1", "name": "vm", "location": "westeurope", "vmSize": "Standard_B2s",
        "resourceGroupName": "rg", "vmScaleSetName": "", "zone": "1", "tagsList": [{"name": "env", "value": "prod"}]},
        "network": {"interface": [{"macAddress": "00AA", "ipv4": {"ipAddress": [{"privateIpAddress": "10.2.0.4",
        "publicIpAddress": ""}]}, "ipv6": {"ipAddress": []}}]}}"#;
    let (address, asked) = service(&[("GET /?api-version=2019-06-04&format=json", machine)]).await;
    let found_there = found("env_azure", &address).await.unwrap();
    let expected = attributes(&[
        ("platform.azure.location", "westeurope"),
        ("platform.azure.resource-group", "rg"),
        ("platform.azure.tag.env", "prod"),
        ("platform.azure.vm-size", "Standard_B2s"),
        ("platform.azure.zone", "1"),
        ("unique.platform.azure.id", "v-1"),
        ("unique.platform.azure.local-ipv4", "10.2.0.4"),
        ("unique.platform.azure.mac", "00AA"),
        ("unique.platform.azure.name", "vm"),
    ]);
    assert_eq!(found_there.attributes, expected);
    assert!(asked.lock().unwrap()[0].contains("metadata: true"));

    let (address, _) = service(&[
        ("GET /id", "9"),
        ("GET /region", "fra1"),
        ("GET /interfaces/public/0/ipv4/address", "192.0.2.9"),
    ])
    .await;
    let expected = attributes(&[
        ("platform.digitalocean.region", "fra1"),
        ("unique.platform.digitalocean.id", "9"),
        ("unique.platform.digitalocean.public-ipv4", "192.0.2.9"),
    ]);
    assert_eq!(found("env_digitalocean", &address).await.unwrap().attributes, expected);
}

/// No time is lost on a machine that is in no cloud.
#[tokio::test]
async fn a_cloud_that_is_not_there_is_asked_only_where_the_operator_wants_it() {
    let nowhere = tempfile::tempdir().unwrap();
    assert_eq!(find(&Probes::new(), nowhere.path(), |_| true).await, Ok(Found::default()));
    let (address, asked) = service(&[]).await;
    assert_eq!(found("env_gce", &address).await, Ok(Found::default()), "nobody has to be in a cloud");
    let denied = find(&probes("env_gce", &address), nowhere.path(), |name| name != "env_gce").await;
    assert_eq!((denied, asked.lock().unwrap().len()), (Ok(Found::default()), 1));
    let mut probes = probes("env_gce", &address);
    let probe = probes.get_mut("env_gce").unwrap();
    (probe.exit_on_failure, probe.retry_attempts) = (true, 2);
    probe.retry_interval = Duration::from_millis(1);
    let why = find(&probes, nowhere.path(), |_| true).await.unwrap_err();
    assert_eq!(why, format!("client.fingerprint \"env_gce\": {address}/id is not there"));
    assert_eq!(asked.lock().unwrap().len(), 4, "it was asked twice again");
}
