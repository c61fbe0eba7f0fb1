"""Writes an OCI image with one layer, the program and the libraries it is linked with, as one tar of an OCI layout."""
import argparse, gzip, hashlib, io, json, os, re, subprocess, tarfile, datetime

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--version", required=True)
    arguments.add_argument("--architecture", required=True)
    arguments.add_argument("--fast", action="store_true")
    arguments.add_argument("to")
    given = arguments.parse_args()

    layer = layer_of(given.program)
    packed = io.BytesIO()
    # The header of gzip holds a time and a name: neither may say when or where this ran.
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=1 if given.fast else 9) as file:
        file.write(layer)
    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    blobs = {}
    packed = add(blobs, packed.getvalue())
    config = add(blobs, dump({
        "created": created,
        "architecture": given.architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/sojourn"],
            "Cmd": ["-help"],
            "Env": ["PATH=/usr/bin", "HOME=/var/lib/sojourn"],
            "ExposedPorts": {"4646/tcp": {}, "4647/tcp": {}, "4648/tcp": {}, "4648/udp": {}},
            "WorkingDir": "/var/lib/sojourn",
            "Labels": {"org.opencontainers.image.title": "sojourn", "org.opencontainers.image.version": given.version,
                       "org.opencontainers.image.licenses": "Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "created_by": "client/packaging/oci.py"}],
    }))
    kind = "application/vnd.oci.image."
    manifest = add(blobs, dump({
        "schemaVersion": 2,
        "mediaType": kind + "manifest.v1+json",
        "config": {"mediaType": kind + "config.v1+json", **config},
        "layers": [{"mediaType": kind + "layer.v1.tar+gzip", **packed}],
    }))
    index = {"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": [{
        "mediaType": kind + "manifest.v1+json",
        **manifest,
        "platform": {"architecture": given.architecture, "os": "linux"},
        "annotations": {"org.opencontainers.image.ref.name": f"sojourn:{given.version}"},
    }]}
    files = {"oci-layout": dump({"imageLayoutVersion": "1.0.0"}), "index.json": dump(index)}
    files.update({f"blobs/sha256/{digest}": data for digest, data in blobs.items()})
    with open(given.to, "wb") as out:
        out.write(tar_of({path: (0o644, data) for path, data in files.items()}, ["blobs", "blobs/sha256"]))


def add(blobs, data):
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"digest": "sha256:" + digest, "size": len(data)}


def dump(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def layer_of(program):
    files = {"usr/bin/sojourn": (0o755, read(program))}
    for path in libraries(program):
        files[path.lstrip("/")] = (0o755, read(path))
    files["etc/passwd"] = (0o644, b"root:x:0:0:root:/var/lib/sojourn:/usr/bin/sojourn\n")
    files["etc/group"] = (0o644, b"root:x:0:\n")
    return tar_of(files, ["etc/sojourn.d", "tmp", "var/lib/sojourn"])


def libraries(program):
    """The loader and the shared libraries that the loader finds, at the paths where it looks for them."""
    found = subprocess.run(["ldd", program], capture_output=True, text=True)
    if "statically linked" in found.stdout or "not a dynamic" in found.stderr:
        return []
    if found.returncode or "not found" in found.stdout:
        raise SystemExit(f"oci.py: what {program} is linked with is not here:\n{found.stdout}{found.stderr}")
    return sorted(set(re.findall(r"(/\S+) \(0x", found.stdout)))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tar_of(files, folders):
    """A tar that says nothing of this machine: sorted, of one owner and one time."""
    folders = {part for path in [*folders, *map(os.path.dirname, files)] for part in parents(path)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted([*files, *folders]):
            info = tarfile.TarInfo(path)
            info.mtime = EPOCH
            if path in folders:
                info.type, info.mode = tarfile.DIRTYPE, 0o1777 if path == "tmp" else 0o755
                tar.addfile(info)
            else:
                info.mode, data = files[path]
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def parents(path):
    while path:
        yield path
        path = os.path.dirname(path)


main()
