//! A storage plugin for tests, written to the interface's public description: its volumes are directories, and it mounts
//! them by bind mounts, or makes links where it may not mount. Whatever it knows is on the disk, so that it may be killed.
//!
//! Below its directory: `volumes/ID` and `snapshots/ID`; `attached/ID@NODE`; `calls`, one line a call; `faults/CALL`, the
//! number of an error, which that call answers with until the file is gone; `NO/CONTROLLER` and the like switch off what
//! it can do.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bytes::{BufMut, Bytes, BytesMut};
use csi::messages::*;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use prost::Message;
use tokio::net::UnixListener;

/// The one secret that this plugin accepts for a volume whose parameters ask for one.
pub const SECRET: &str = "opensesame";

/// What the node is called by this plugin.
pub const NODE_ID: &str = "node-of-the-plugin";

type Fault = (i32, String);

/// Serves until it is dropped.
pub async fn serve(socket: &Path, dir: &Path) {
    fs::remove_file(socket).ok();
    for folder in ["volumes", "snapshots", "attached", "faults"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    let listener = UnixListener::bind(socket).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let dir = dir.to_owned();
        tokio::spawn(async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else { return };
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::spawn(answer(request, respond, dir.clone()));
            }
        });
    }
}

async fn answer(request: Request<h2::RecvStream>, mut respond: SendResponse<Bytes>, dir: PathBuf) {
    let path = request.uri().path().to_string();
    let mut body = request.into_body();
    let mut received = BytesMut::new();
    while let Some(Ok(piece)) = body.data().await {
        body.flow_control().release_capacity(piece.len()).ok();
        received.extend_from_slice(&piece);
    }
    let plugin = Storage { dir };
    let call = path.rsplit('/').next().unwrap();
    // One byte says whether it is compressed, four how long it is.
    let answered = match plugin.fault(call) {
        Some(fault) => Err(fault),
        None => plugin.call(call, &received[5..]),
    };
    let response = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    let Ok(mut stream) = respond.send_response(response, false) else { return };
    let (code, message) = match answered {
        Ok(bytes) => {
            let mut framed = BytesMut::new();
            framed.put_u8(0);
            framed.put_u32(bytes.len() as u32);
            framed.extend_from_slice(&bytes);
            stream.send_data(framed.freeze(), false).ok();
            (0, String::new())
        }
        Err(fault) => fault,
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.to_string().parse().unwrap());
    trailers.insert("grpc-message", message.replace(' ', "%20").parse().unwrap());
    stream.send_trailers(trailers).ok();
}

struct Storage {
    dir: PathBuf,
}

impl Storage {
    fn fault(&self, call: &str) -> Option<Fault> {
        let code = fs::read_to_string(self.dir.join("faults").join(call)).ok()?;
        self.note(&format!("{call} fails"));
        Some((code.trim().parse().unwrap(), format!("told to fail, not for {SECRET}")))
    }

    fn note(&self, line: &str) {
        let mut calls =
            fs::OpenOptions::new().create(true).append(true).open(self.dir.join("calls")).unwrap();
        writeln!(calls, "{line}").unwrap();
    }

    fn has(&self, what: &str) -> bool {
        !self.dir.join("NO").join(what).exists()
    }

    fn volume(&self, id: &str) -> Result<PathBuf, Fault> {
        let path = self.dir.join("volumes").join(id);
        if path.exists() { Ok(path) } else { Err((5, format!("no volume {id}"))) }
    }

    fn call(&self, call: &str, request: &[u8]) -> Result<Vec<u8>, Fault> {
        let rpcs = |numbers: &[i32]| {
            let one = |kind| RpcCapability { rpc: Some(CapabilityType { kind }) };
            GetCapabilitiesResponse { capabilities: numbers.iter().copied().map(one).collect() }
        };
        Ok(match call {
            "Probe" => ProbeResponse { ready: Some(BoolValue { value: self.has("READY") }) }.encode_to_vec(),
            "GetPluginInfo" => {
                GetPluginInfoResponse { name: "dirs.test".into(), vendor_version: "1.2".into() }
                    .encode_to_vec()
            }
            "GetPluginCapabilities" => {
                let one = |kind| PluginCapability { service: Some(CapabilityType { kind }) };
                let services = if self.has("CONTROLLER") { vec![one(1)] } else { vec![] };
                GetPluginCapabilitiesResponse { capabilities: services }.encode_to_vec()
            }
            "ControllerGetCapabilities" => rpcs(&[1, 2, 3, 5, 6, 9]).encode_to_vec(),
            "NodeGetCapabilities" if self.has("STAGE") => rpcs(&[1, 3]).encode_to_vec(),
            "NodeGetCapabilities" => rpcs(&[3]).encode_to_vec(),
            "NodeGetInfo" => NodeGetInfoResponse {
                node_id: NODE_ID.into(),
                max_volumes_per_node: 7,
                accessible_topology: None,
            }
            .encode_to_vec(),
            "CreateVolume" => self.create(read(request)?)?.encode_to_vec(),
            "DeleteVolume" => {
                let request: DeleteVolumeRequest = read(request)?;
                self.note(&format!("{call} {}", request.volume_id));
                fs::remove_dir_all(self.volume(&request.volume_id)?).unwrap();
                vec![]
            }
            "ListVolumes" => self.list_volumes(read(request)?).encode_to_vec(),
            "ControllerExpandVolume" => {
                let request: ControllerExpandVolumeRequest = read(request)?;
                self.volume(&request.volume_id)?;
                let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
                self.note(&format!("{call} {} {capacity_bytes}", request.volume_id));
                ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required: true }
                    .encode_to_vec()
            }
            "ValidateVolumeCapabilities" => {
                let request: ValidateVolumeCapabilitiesRequest = read(request)?;
                self.volume(&request.volume_id)?;
                let confirmed = Some(Confirmed { volume_capabilities: request.volume_capabilities });
                ValidateVolumeCapabilitiesResponse { confirmed, message: String::new() }.encode_to_vec()
            }
            "CreateSnapshot" | "DeleteSnapshot" | "ListSnapshots" => self.snapshots(call, request)?,
            _ => self.publication(call, request)?,
        })
    }

    fn create(&self, request: CreateVolumeRequest) -> Result<CreateVolumeResponse, Fault> {
        let asks = request.parameters.get("secret").map(String::as_str) == Some("yes");
        if asks && request.secrets.get("key").map(String::as_str) != Some(SECRET) {
            return Err((16, "the secret is another one".into()));
        }
        let volume_id = format!("ext-{}", request.name.replace(['/', '[', ']'], "_"));
        self.note(&format!("CreateVolume {volume_id}"));
        let path = self.dir.join("volumes").join(&volume_id);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let volume = Volume {
            capacity_bytes: request.capacity_range.map_or(1 << 20, |range| range.required_bytes),
            volume_id,
            volume_context: BTreeMap::from([("made".to_string(), "here".to_string())]),
            content_source: request.volume_content_source,
            accessible_topology: vec![],
        };
        Ok(CreateVolumeResponse { volume: Some(volume) })
    }

    fn list_volumes(&self, request: ListVolumesRequest) -> ListVolumesResponse {
        let all = names(&self.dir.join("volumes"));
        let from = request.starting_token.parse().unwrap_or(0);
        let len = if request.max_entries == 0 { all.len() } else { request.max_entries as usize };
        let entry = |id: &String| VolumeEntry {
            volume: Some(Volume { volume_id: id.clone(), capacity_bytes: 1 << 20, ..Volume::default() }),
            status: None,
        };
        let entries: Vec<VolumeEntry> = all.iter().skip(from).take(len).map(entry).collect();
        let next = from + entries.len();
        ListVolumesResponse {
            entries,
            next_token: if next < all.len() { next.to_string() } else { String::new() },
        }
    }

    fn snapshots(&self, call: &str, request: &[u8]) -> Result<Vec<u8>, Fault> {
        let folder = self.dir.join("snapshots");
        let snapshot = |id: &str| Snapshot {
            size_bytes: 1 << 20,
            snapshot_id: id.to_string(),
            source_volume_id: fs::read_to_string(folder.join(id)).unwrap_or_default(),
            creation_time: Some(Timestamp { seconds: 1_700_000_000, nanos: 0 }),
            ready_to_use: true,
        };
        Ok(match call {
            "CreateSnapshot" => {
                let request: CreateSnapshotRequest = read(request)?;
                self.volume(&request.source_volume_id)?;
                let id = format!("snap-{}", request.name);
                self.note(&format!("{call} {id} of {}", request.source_volume_id));
                fs::write(folder.join(&id), &request.source_volume_id).unwrap();
                CreateSnapshotResponse { snapshot: Some(snapshot(&id)) }.encode_to_vec()
            }
            "DeleteSnapshot" => {
                let request: DeleteSnapshotRequest = read(request)?;
                self.note(&format!("{call} {}", request.snapshot_id));
                fs::remove_file(folder.join(&request.snapshot_id)).map_err(|_| (5, "no such".to_string()))?;
                vec![]
            }
            _ => {
                let entries = names(&folder);
                let entries =
                    entries.iter().map(|id| SnapshotEntry { snapshot: Some(snapshot(id)) }).collect();
                ListSnapshotsResponse { entries, next_token: String::new() }.encode_to_vec()
            }
        })
    }

    fn publication(&self, call: &str, request: &[u8]) -> Result<Vec<u8>, Fault> {
        let attached = |id: &str, node: &str| self.dir.join("attached").join(format!("{id}@{node}"));
        match call {
            "ControllerPublishVolume" => {
                let request: ControllerPublishVolumeRequest = read(request)?;
                self.volume(&request.volume_id)?;
                self.note(&format!("{call} {} {}", request.volume_id, request.node_id));
                fs::write(attached(&request.volume_id, &request.node_id), "").unwrap();
                let publish_context = BTreeMap::from([("device".to_string(), "/dev/none".to_string())]);
                return Ok(ControllerPublishVolumeResponse { publish_context }.encode_to_vec());
            }
            "ControllerUnpublishVolume" => {
                let request: ControllerUnpublishVolumeRequest = read(request)?;
                self.note(&format!("{call} {} {}", request.volume_id, request.node_id));
                fs::remove_file(attached(&request.volume_id, &request.node_id)).ok();
            }
            "NodeStageVolume" => {
                let request: NodeStageVolumeRequest = read(request)?;
                let volume = self.volume(&request.volume_id)?;
                if self.has("CONTROLLER") && !request.publish_context.contains_key("device") {
                    return Err((3, "not attached".into()));
                }
                self.note(&format!("{call} {}", request.volume_id));
                mount(&volume, Path::new(&request.staging_target_path), false)?;
            }
            "NodeUnstageVolume" => {
                let request: NodeUnstageVolumeRequest = read(request)?;
                self.note(&format!("{call} {}", request.volume_id));
                unmount(Path::new(&request.staging_target_path), false);
            }
            "NodePublishVolume" => {
                let request: NodePublishVolumeRequest = read(request)?;
                let volume = self.volume(&request.volume_id)?;
                let is_block = matches!(
                    request.volume_capability.and_then(|capability| capability.access_type),
                    Some(AccessType::Block(_))
                );
                let how = if request.readonly { " ro" } else { "" };
                self.note(&format!("{call} {}{how}", request.volume_id));
                let target = Path::new(&request.target_path);
                if is_block {
                    block_device(target);
                } else {
                    mount(&volume, target, request.readonly)?;
                }
            }
            "NodeExpandVolume" => {
                let request: NodeExpandVolumeRequest = read(request)?;
                let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
                self.note(&format!("{call} {} {capacity_bytes}", request.volume_id));
                // The paths are those of the mounts.
                let paths = [&request.volume_path, &request.staging_target_path];
                if let Some(none) = paths.into_iter().find(|path| !Path::new(path).exists()) {
                    return Err((5, format!("nothing is mounted at {none}")));
                }
                return Ok(NodeExpandVolumeResponse { capacity_bytes }.encode_to_vec());
            }
            "NodeUnpublishVolume" => {
                let request: NodeUnpublishVolumeRequest = read(request)?;
                self.note(&format!("{call} {}", request.volume_id));
                unmount(Path::new(&request.target_path), true);
            }
            other => return Err((12, format!("no call {other}"))),
        }
        Ok(vec![])
    }
}

fn read<T: Message + Default>(request: &[u8]) -> Result<T, Fault> {
    T::decode(request).map_err(|error| (3, error.to_string()))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// A device that nobody has plugged in: it can be seen, and opened by nobody.
fn block_device(target: &Path) {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    let made = mknodat(CWD, target, FileType::BlockDevice, Mode::from_raw_mode(0o660), makedev(7, 4_000));
    assert!(made.is_ok() || target.exists(), "{made:?}");
}

fn is_mounted(path: &Path) -> bool {
    let listed = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let wanted = path.to_str().unwrap();
    listed.lines().any(|line| line.split(' ').nth(4) == Some(wanted))
}

fn mount(volume: &Path, target: &Path, readonly: bool) -> Result<(), Fault> {
    if is_mounted(target) || target.is_symlink() {
        return Ok(());
    }
    fs::create_dir_all(target).map_err(|error| (13, error.to_string()))?;
    if rustix::mount::mount_bind(volume, target).is_err() {
        // Not root: a link does for whoever looks at the path.
        fs::remove_dir(target).ok();
        return symlink(volume, target).map_err(|error| (13, error.to_string()));
    }
    if readonly {
        use rustix::mount::MountFlags;
        let flags = MountFlags::BIND | MountFlags::RDONLY;
        rustix::mount::mount_remount(target, flags, "").map_err(|error| (13, error.to_string()))?;
    }
    Ok(())
}

fn unmount(target: &Path, remove: bool) {
    if is_mounted(target) {
        rustix::mount::unmount(target, rustix::mount::UnmountFlags::empty()).unwrap();
    }
    if target.is_symlink() {
        fs::remove_file(target).unwrap();
    }
    if remove {
        fs::remove_dir(target).ok();
    }
}
