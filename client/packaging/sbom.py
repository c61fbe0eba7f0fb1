"""Writes what the program is built of, in CycloneDX's JSON: every crate that is linked, with version, licence and checksum."""
import datetime, json, os, subprocess, sys, tomllib, uuid


def main(to):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    if os.environ.get("CARGO_NET_OFFLINE") == "true":
        command.append("--offline")
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(id for id, package in packages.items() if package["name"] == "sojourn" and package["source"] is None)
    with open("Cargo.lock", "rb") as file:
        locked = {(package["name"], package["version"]): package.get("checksum") for package in tomllib.load(file)["package"]}

    # Tests' own dependencies are not in the program; what builds it may be, as generated code.
    links, open_ids = {}, [root]
    while open_ids:
        id = open_ids.pop()
        if id in links:
            continue
        needed = (dep for dep in nodes[id]["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"]))
        links[id] = sorted({dep["pkg"] for dep in needed})
        open_ids.extend(links[id])

    refs = {id: f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}" for id in links}
    components = sorted((component(packages[id], refs[id], locked) for id in links if id != root), key=lambda c: c["bom-ref"])
    dependencies = [{"ref": refs[id], "dependsOn": sorted(refs[dep] for dep in deps)} for id, deps in links.items()]
    body = {
        "components": components,
        "dependencies": sorted(dependencies, key=lambda dependency: dependency["ref"]),
    }
    stamp = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": stamp.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**component(packages[root], refs[root], locked), "type": "application"},
        },
        **body,
    }
    with open(to, "w") as out:
        json.dump(bom, out, indent=1, sort_keys=True)
        out.write("\n")


def component(package, ref, locked):
    found = {"type": "library", "bom-ref": ref, "name": package["name"], "version": package["version"], "purl": ref}
    if package.get("license"):
        # Older crates write a slash where SPDX has OR.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = locked.get((package["name"], package["version"]))
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found


main(sys.argv[1])
