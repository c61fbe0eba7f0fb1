//! Every function of the language, by what it gives.

use std::collections::BTreeMap;

use jobspec::{Files, NoFiles, Source, Variables, parse};

/// A disk of a few files.
pub struct Disk(BTreeMap<&'static str, &'static [u8]>);

pub fn disk() -> Disk {
    let files: [(&str, &[u8]); 4] =
        [("greeting.txt", b"hello\n"), ("conf/a.hcl", b""), ("conf/deep/b.hcl", b""), ("blob", &[0xff, 0])];
    Disk(files.into_iter().collect())
}

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = path.trim_start_matches("./");
        self.0.get(path).map(|content| content.to_vec()).ok_or_else(|| format!("no file {path}"))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, String> {
        let below = |path: &&str| path.strip_prefix(folder)?.strip_prefix('/').map(str::to_string);
        Ok(self.0.keys().filter_map(below).collect())
    }

    fn absolute(&self, path: &str) -> Result<String, String> {
        Ok(format!("/work/{path}"))
    }

    fn home(&self) -> Option<String> {
        Some("/home/me".to_string())
    }

    fn random(&self) -> Option<[u8; 16]> {
        Some([0xff; 16])
    }
}

fn value_with(files: &dyn Files, expression: &str) -> Result<String, String> {
    let text = format!("job \"j\" {{\n meta = {{\n v = {expression}\n }}\n}}\n");
    let parsed = parse(&Source::new("j.hcl", text), &Variables::default(), files);
    parsed.map(|parsed| parsed.job.meta["v"].clone()).map_err(|wrong| wrong.plain())
}

fn gives(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(value_with(&disk(), expression).as_deref(), Ok(*expected), "{expression}");
    }
}

fn fails(cases: &[(&str, &str)]) {
    for (expression, message) in cases {
        let wrong = value_with(&disk(), expression).expect_err(expression);
        assert!(wrong.contains(message), "{expression}: {wrong}");
    }
}

#[test]
fn numbers() {
    gives(&[
        ("abs(-3) + abs(2.5)", "5.5"),
        ("abs(-9007199254740993)", "9007199254740993"),
        ("ceil(1.2)", "2"),
        ("ceil(-1.2)", "-1"),
        ("floor(-1.2)", "-2"),
        ("log(8, 2)", "3"),
        ("log(1, 10)", "0"),
        ("max(3, 9007199254740993, -1)", "9007199254740993"),
        ("max([1, 5, 3]...)", "5"),
        ("min(2.5, \"2\", 7)", "2"),
        ("pow(2, 10)", "1024"),
        ("pow(4, 0.5)", "2"),
        ("signum(-7) + signum(0)", "-1"),
        ("parseint(\"ff\", 16)", "255"),
        ("parseint(\"-077\", 8)", "-63"),
        ("parseint(\"zZ\", 62)", "2231"),
        ("parseint(\"FF\", 16)", "255"),
    ]);
    fails(&[
        ("parseint(\"12\", 2)", "not a whole number in base 2"),
        ("parseint(\"\", 10)", "not a whole number"),
        ("parseint(\"1\", 63)", "from 2 to 62"),
        ("log(0, 2)", "not a finite number"),
        ("max()", "takes at least 1 arguments"),
        ("abs(\"x\")", "expected a number"),
    ]);
}

#[test]
fn text() {
    gives(&[
        ("lower(\"ÄB\")", "äb"),
        ("upper(\"äb\")", "ÄB"),
        ("title(\"hello wide-world it's\")", "Hello Wide-World It'S"),
        ("chomp(\"a\\r\\n\\n\")", "a"),
        ("trim(\"?!a!?\", \"!?\")", "a"),
        ("trimprefix(\"vv1\", \"v\")", "v1"),
        ("trimsuffix(\"a.b\", \".b\")", "a"),
        ("trimspace(\" \\t a \\n\")", "a"),
        ("strlen(\"äé\")", "2"),
        ("strrev(\"abc\")", "cba"),
        ("reverse(\"abc\")", "cba"),
        ("substr(\"hello\", 1, 3)", "ell"),
        ("substr(\"hello\", -3, -1)", "llo"),
        ("substr(\"hello\", 2, 99)", "llo"),
        ("substr(\"hello\", 9, 1)", ""),
        ("substr(\"hello\", 1, 0)", ""),
        ("join(\"-\", [\"a\", \"b\"], [1])", "a-b-1"),
        ("length(split(\",\", \"\"))", "1"),
        ("join(\"|\", split(\", \", \"a, b,c\"))", "a|b,c"),
        ("replace(\"a.b.c\", \".\", \"-\")", "a-b-c"),
        ("regex_replace(\"a1b22\", \"([a-z])([0-9]+)\", \"$2$1\")", "1a22b"),
        ("regex_replace(\"abc\", \"(?P<x>b)\", \"<$${x}>\")", "a<b>c"),
        ("indent(2, \"a\\nb\\n\\nc\")", "a\n  b\n  \n  c"),
        ("urlencode(\"a b/c?d=ü~\")", "a+b%2Fc%3Fd%3D%C3%BC~"),
        ("format(\"%s\", 1.5)", "1.5"),
        ("join(\",\", formatlist(\"%s:%d\", [\"a\", \"b\"], 80))", "a:80,b:80"),
        ("length(formatlist(\"%s\", []))", "0"),
    ]);
    fails(&[
        ("substr(\"a\", 0, -2)", "not negative"),
        ("regex_replace(\"a\", \"(\", \"\")", "not a regular expression"),
        ("join(\",\", \"a\")", "expected a list"),
        ("formatlist(\"%s%s\", [1], [1, 2])", "differ in length"),
        ("indent(-1, \"a\")", "less than nothing"),
    ]);
}

#[test]
fn formats() {
    for (form, expected) in [
        ("\"%s|%q|%v\", \"a\\\"b\", \"a\\\"b\", \"x\"", "a\"b|\"a\\\"b\"|x"),
        ("\"%d %+d %05d %-5d|\", 7, 7, 42, 42", "7 +7 00042 42   |"),
        ("\"%d\", 3.9", "3"),
        ("\"%d\", \"12\"", "12"),
        ("\"%x %X %#x\", 255, 255, 255", "ff FF 0xff"),
        ("\"%x\", \"hi\"", "6869"),
        ("\"%b %o %#o\", 5, 8, 8", "101 10 010"),
        ("\"%f %.2f %8.3f|\", 1.5, 3.14159, 2", "1.500000 3.14    2.000|"),
        ("\"%e %.1e %E\", 12345.678, 0.00012, 1", "1.234568e+04 1.2e-04 1.000000E+00"),
        ("\"%g %g %g %g %.3g\", 100000, 1000000, 0.0001, 0.00001, 3.14159", "100000 1e+06 0.0001 1e-05 3.14"),
        ("\"%t %t\", true, \"false\"", "true false"),
        ("\"%v %v %v\", true, null, [1, \"a\"]", "true null [1,\"a\"]"),
        ("\"%#v %#v\", \"a\", { b = null }", "\"a\" {\"b\":null}"),
        ("\"%[2]s %[1]s\", \"a\", \"b\"", "b a"),
        ("\"%5s|%-5s|%.2s|%5.1s|\", \"ab\", \"ab\", \"abc\", \"xyz\"", "   ab|ab   |ab|    x|"),
        ("\"100%%\"", "100%"),
    ] {
        assert_eq!(value_with(&disk(), &format!("format({form})")).as_deref(), Ok(expected), "{form}");
    }
    fails(&[
        ("format(\"%s\")", "there is no argument for %s"),
        ("format(\"a\", 1)", "1 arguments, but the text uses 0"),
        ("format(\"%z\", 1)", "there is no %z"),
        ("format(\"%d\", \"x\")", "expected a number"),
        ("format(\"%\", 1)", "ends within a %"),
        ("format(\"%s\", [1])", "expected text"),
    ]);
}

#[test]
fn collections() {
    gives(&[
        ("jsonencode(chunklist([1, 2, 3], 2))", "[[1,2],[3]]"),
        ("jsonencode(chunklist([1, 2], 0))", "[[1,2]]"),
        ("coalesce(null, \"\", \"x\")", ""),
        ("coalesce(null, 5)", "5"),
        ("jsonencode(coalescelist([], [1]))", "[1]"),
        ("jsonencode(compact([\"a\", \"\", null, \"b\"]))", "[\"a\",\"b\"]"),
        ("jsonencode(concat([1], [], [\"a\", [2]]))", "[1,\"a\",[2]]"),
        ("contains([1, 2], 2) && !contains([\"1\"], 1)", "true"),
        ("jsonencode(distinct([1, 2, 1]))", "[1,2]"),
        ("element([1, 2, 3], 4)", "2"),
        ("element([1, 2, 3], -1)", "3"),
        ("jsonencode(flatten([[1, []], [[2, 3]], 4]))", "[1,2,3,4]"),
        ("index([\"a\", \"b\"], 1)", "b"),
        ("index({ x = 1 }, \"x\")", "1"),
        ("jsonencode(keys({ b = 1, a = 2 }))", "[\"a\",\"b\"]"),
        ("jsonencode(values({ b = 1, a = 2 }))", "[2,1]"),
        ("length({ a = 1 }) + length([1, 2])", "3"),
        ("lookup({ a = 1 }, \"b\", \"none\")", "none"),
        ("jsonencode(merge({ a = 1, b = { c = 1 } }, null, { b = 2 }))", "{\"a\":1,\"b\":2}"),
        ("jsonencode(range(3))", "[0,1,2]"),
        ("jsonencode(range(1, 4))", "[1,2,3]"),
        ("jsonencode(range(5, 0, -2))", "[5,3,1]"),
        ("jsonencode(range(4, 1))", "[4,3,2]"),
        ("jsonencode(range(0, 1, 0.5))", "[0,0.5]"),
        ("jsonencode(range(0, 0, -1))", "[]"),
        ("jsonencode(setintersection([1, 2, 3], [3, 2]))", "[2,3]"),
        ("jsonencode(setunion([2, 1], [3, 2]))", "[1,2,3]"),
        ("jsonencode(setproduct([\"a\", \"b\"], [1, 2]))", "[[\"a\",1],[\"a\",2],[\"b\",1],[\"b\",2]]"),
        ("jsonencode(slice([1, 2, 3], 1, 3))", "[2,3]"),
        ("jsonencode(sort([\"b\", \"B\", \"a\"]))", "[\"B\",\"a\",\"b\"]"),
        ("jsonencode(zipmap([\"a\", \"b\"], [1, 2]))", "{\"a\":1,\"b\":2}"),
    ]);
    fails(&[
        ("coalesce(null)", "every argument is null"),
        ("coalescelist([], [])", "every list is empty"),
        ("element([], 0)", "the list is empty"),
        ("index([1], 1)", "no element 1"),
        ("lookup({}, \"a\")", "no default was given"),
        ("range(0, 5, -1)", "leads away"),
        ("range(0, 5, 0)", "leads away"),
        ("slice([1], 0, 2)", "outside"),
        ("zipmap([\"a\"], [])", "1 keys for 0 values"),
        ("keys([1])", "expected an object"),
    ]);
}

#[test]
fn encodings() {
    gives(&[
        ("base64encode(\"hello\")", "aGVsbG8="),
        ("base64decode(\"aGVsbG8=\")", "hello"),
        ("jsonencode({ b = [1, true, null], a = \"<\" })", r#"{"a":"\u003c","b":[1,true,null]}"#),
        ("jsondecode(\"{\\\"a\\\": [1, 2.5]}\").a[1]", "2.5"),
        ("csvdecode(\"name,port\\nweb,80\\n\\\"a,b\\\",90\")[1].name", "a,b"),
        ("csvdecode(\"name,port\\nweb,80\")[0].port + 1", "81"),
        ("length(csvdecode(\"a,b\\n\"))", "0"),
    ]);
    fails(&[
        ("base64decode(\"?\")", "not base64"),
        ("base64decode(\"/w==\")", "not UTF-8"),
        ("jsondecode(\"{\")", "not JSON"),
        ("csvdecode(\"a,b\\n1\")", "not a table"),
        ("csvdecode(\"a,a\\n1,2\")", "two columns are called \"a\""),
        ("csvdecode(\"\")", "no row of names"),
    ]);
}

#[test]
fn yaml() {
    gives(&[
        (
            "jsonencode(yamldecode(\"a: 1\\nb: [x, 'y', 2.5, true, ~]\\nc:\\n  - d: |\\n      two\\n      lines\\n\"))",
            r#"{"a":1,"b":["x","y",2.5,true,null],"c":[{"d":"two\nlines\n"}]}"#,
        ),
        (
            "jsonencode(yamldecode(\"{x: &a {k: 1}, y: *a, z: {<<: *a, l: 2}}\"))",
            r#"{"x":{"k":1},"y":{"k":1},"z":{"k":1,"l":2}}"#,
        ),
        (
            "jsonencode(yamldecode(\"[0x1f, 0o17, -3, 1e3, '5', !!str 7, yes, 1.2.3]\"))",
            r#"[31,15,-3,1000,"5","7","yes","1.2.3"]"#,
        ),
        ("jsonencode(yamldecode(\"\"))", "null"),
        ("jsonencode(yamldecode(\"hello\"))", "\"hello\""),
        (
            "yamlencode({ foo = [1, { a = \"b\", c = \"d\" }, []], bar = \"baz\", n = null })",
            "\"bar\": \"baz\"\n\"foo\":\n- 1\n- \"a\": \"b\"\n  \"c\": \"d\"\n- []\n\"n\": null\n",
        ),
        (
            "yamlencode({ a = { b = { c = true } }, d = {} })",
            "\"a\":\n  \"b\":\n    \"c\": true\n\"d\": {}\n",
        ),
        ("yamlencode([[1, 2], [3]])", "- - 1\n  - 2\n- - 3\n"),
        ("yamlencode(\"a\\\"b\")", "\"a\\\"b\"\n"),
        ("yamlencode({ t = \"one\\ntwo\\n\" })", "\"t\": |\n  one\n  two\n"),
        ("yamlencode({ t = \"one\\ntwo\" })", "\"t\": |-\n  one\n  two\n"),
        (
            "jsonencode(yamldecode(yamlencode({ a = [{ b = \"x\\n\\ny\\n\\n\", c = [[]] }], d = \" \\n\" })))",
            r#"{"a":[{"b":"x\n\ny\n\n","c":[[]]}],"d":" \n"}"#,
        ),
    ]);
    fails(&[
        ("yamldecode(\"a: [\")", "not YAML"),
        ("yamldecode(\"a: 1\\na: 2\")", "the key \"a\" stands twice"),
        ("yamldecode(\"--- 1\\n--- 2\")", "more than one document"),
        ("yamldecode(\"? [1]\\n: 2\")", "a key of an object"),
    ]);
    let bomb: String =
        (1..12).map(|n| format!("a{n}: &a{n} [{}]\\n", vec![format!("*a{}", n - 1); 10].join(","))).collect();
    fails(&[(&format!("yamldecode(\"a0: &a0 x\\n{bomb}\")"), "grows beyond")]);
    let deep = format!("yamldecode(\"{}1{}\")", "[".repeat(3000), "]".repeat(3000));
    assert!(value_with(&disk(), &deep).is_err());
}

#[test]
fn digests() {
    gives(&[
        ("md5(\"hello\")", "5d41402abc4b2a76b9719d911017c592"),
        ("sha1(\"hello\")", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
        ("sha256(\"hello\")", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"),
        ("substr(sha512(\"hello\"), 0, 32)", "9b71d224bd62f3785d96d46ad3ea3d73"),
        ("uuidv4()", "ffffffff-ffff-4fff-bfff-ffffffffffff"),
        ("uuidv5(\"dns\", \"www.example.com\")", "2ed6657d-e927-568b-95e1-2665a8aea6a2"),
        (
            "uuidv5(\"6ba7b810-9dad-11d1-80b4-00c04fd430c8\", \"www.example.com\")",
            "2ed6657d-e927-568b-95e1-2665a8aea6a2",
        ),
        ("substr(bcrypt(\"secret\", 4), 0, 7)", "$2a$04$"),
    ]);
    fails(&[
        ("uuidv5(\"nowhere\", \"a\")", "neither a UUID nor one of"),
        ("bcrypt(\"a\", 31)", "from 4 to 12"),
        ("sha256()", "takes 1 arguments"),
    ]);
    let hash = value_with(&disk(), "bcrypt(\"secret\", 4)").unwrap();
    assert!(bcrypt_knows(&hash), "{hash}");
}

/// 60 characters, of which 22 are the salt that was all ones.
fn bcrypt_knows(hash: &str) -> bool {
    hash.len() == 60 && hash[7..28] == "9".repeat(21)
}

#[test]
fn addresses() {
    gives(&[
        ("cidrhost(\"10.12.112.0/20\", 16)", "10.12.112.16"),
        ("cidrhost(\"10.12.112.0/20\", 268)", "10.12.113.12"),
        ("cidrhost(\"10.0.0.0/24\", -1)", "10.0.0.255"),
        ("cidrhost(\"fd00:fd12:3456:7890:00a2::/72\", 34)", "fd00:fd12:3456:7890::22"),
        ("cidrhost(\"10.1.2.240/28\", 1)", "10.1.2.241"),
        ("cidrnetmask(\"172.16.0.0/12\")", "255.240.0.0"),
        ("cidrnetmask(\"0.0.0.0/0\")", "0.0.0.0"),
        ("cidrsubnet(\"172.16.0.0/12\", 4, 2)", "172.18.0.0/16"),
        ("cidrsubnet(\"10.1.2.0/24\", 4, 15)", "10.1.2.240/28"),
        ("cidrsubnet(\"fd00:fd12:3456:7890::/56\", 16, 162)", "fd00:fd12:3456:7800:a200::/72"),
        (
            "jsonencode(cidrsubnets(\"10.1.0.0/16\", 4, 4, 8, 4))",
            r#"["10.1.0.0/20","10.1.16.0/20","10.1.32.0/24","10.1.48.0/20"]"#,
        ),
    ]);
    fails(&[
        ("cidrhost(\"10.0.0.0/30\", 4)", "has no address 4"),
        ("cidrhost(\"10.0.0.0/30\", -5)", "has no address -5"),
        ("cidrhost(\"10.0.0.0\", 1)", "is not a range of addresses"),
        ("cidrhost(\"10.0.0.0/+8\", 1)", "is not a range of addresses"),
        ("cidrnetmask(\"fd00::/8\")", "only ranges of IPv4"),
        ("cidrsubnet(\"10.0.0.0/24\", 9, 0)", "do not fit behind /24"),
        ("cidrsubnet(\"10.0.0.0/24\", 2, 4)", "do not hold the number 4"),
        ("cidrsubnets(\"10.0.0.0/24\", 1, 1, 1)", "no room"),
    ]);
}

#[test]
fn times() {
    gives(&[
        ("timeadd(\"2020-01-01T00:00:00Z\", \"1h30m\")", "2020-01-01T01:30:00Z"),
        ("timeadd(\"2020-01-01T00:00:00+02:00\", \"-1s\")", "2019-12-31T23:59:59+02:00"),
        ("formatdate(\"DD MMM YYYY hh:mm ZZZ\", \"2018-01-02T23:12:01Z\")", "02 Jan 2018 23:12 UTC"),
        (
            "formatdate(\"EEEE, DD-MMM-YY hh:mm:ss ZZZ\", \"2018-01-02T23:12:01Z\")",
            "Tuesday, 02-Jan-18 23:12:01 UTC",
        ),
        (
            "formatdate(\"EEE, DD MMM YYYY hh:mm:ss ZZZ\", \"2018-01-02T23:12:01-08:00\")",
            "Tue, 02 Jan 2018 23:12:01 -0800",
        ),
        (
            "formatdate(\"MMMM D, YYYY, H:m:saa 'o''clock' HH AA\", \"2018-01-02T00:02:01Z\")",
            "January 2, 2018, 12:2:1am o'clock 12 AM",
        ),
        ("formatdate(\"h ZZZZZ Z M MM\", \"2018-11-02T09:02:01+05:30\")", "9 +05:30 +05:30 11 11"),
        ("formatdate(\"Z ZZZZ ZZZZZ\", \"2018-11-02T09:02:01Z\")", "Z +0000 +00:00"),
    ]);
    fails(&[
        ("timeadd(\"yesterday\", \"1h\")", "not an RFC 3339 time"),
        ("timeadd(\"2020-01-01T00:00:00Z\", \"1 day\")", "timeadd: "),
        ("formatdate(\"X\", \"2018-01-02T23:12:01Z\")", "\"X\" is no part of a date"),
        ("formatdate(\"'a\", \"2018-01-02T23:12:01Z\")", "never closed"),
    ]);
}

#[test]
fn types_and_fallbacks() {
    gives(&[
        ("convert(\"5\", number) + 1", "6"),
        ("jsonencode(convert([1, true], list(string)))", "[\"1\",\"true\"]"),
        ("jsonencode(convert({ a = \"1\", b = 2 }, object({ a = number })))", "{\"a\":1}"),
        ("try([1][5], { a = 1 }.b, \"fallback\")", "fallback"),
        ("can({ a = 1 }.b)", "false"),
        ("can(1 / 1)", "true"),
        ("tostring(1) == \"1\" && tonumber(\"2\") == 2 && tobool(\"true\")", "true"),
        ("jsonencode(toset([\"b\", \"a\", \"b\"]))", "[\"a\",\"b\"]"),
        (
            "jsonencode(toset([\"b\", \"a\", \"10\", \"2\", \"é\", \"Z\"]))",
            "[\"10\",\"2\",\"Z\",\"a\",\"b\",\"é\"]",
        ),
        ("jsonencode(toset([10, 2, 1.5, -1, 2]))", "[-1,1.5,2,10]"),
        ("jsonencode(toset([true, false, true]))", "[false,true]"),
        ("jsonencode(toset([\"b\", 10, true, \"10\"]))", "[\"10\",\"b\",\"true\"]"),
        ("jsonencode(toset([null, \"b\", \"a\"]))", "[\"a\",\"b\",null]"),
        ("jsonencode(toset([[10], [9], [2], [9, 1], [9]]))", "[[10],[2],[9,1],[9]]"),
        ("jsonencode(toset([{ b = 1, a = 2 }, { a = 1 }]))", "[{\"a\":1},{\"a\":2,\"b\":1}]"),
        ("join(\",\", [for x in toset([3, 1.5, 2]) : x])", "1.5,2,3"),
        ("jsonencode(convert([\"b\", \"a\", \"b\"], set(string)))", "[\"a\",\"b\"]"),
    ]);
    fails(&[
        ("convert(\"x\", number)", "convert: expected a number"),
        ("convert(1, wat)", "there is no type \"wat\""),
        ("convert(1)", "takes a value and a type"),
        ("try([1][5])", "no element 5"),
    ]);
}

#[test]
fn files() {
    gives(&[
        ("chomp(file(\"./greeting.txt\"))", "hello"),
        ("filebase64(\"blob\")", "/wA="),
        ("fileexists(\"blob\") && !fileexists(\"other\")", "true"),
        ("jsonencode(fileset(\"conf\", \"**/*.hcl\"))", "[\"a.hcl\",\"deep/b.hcl\"]"),
        ("jsonencode(fileset(\"conf\", \"{a,b}.*\"))", "[\"a.hcl\"]"),
        ("abspath(\"x\")", "/work/x"),
        ("pathexpand(\"~/x\")", "/home/me/x"),
        ("pathexpand(\"~other/x\")", "~other/x"),
        ("basename(\"a/b/c.txt\")", "c.txt"),
        ("dirname(\"a/b/c.txt\")", "a/b"),
    ]);
    fails(&[
        ("file(\"blob\")", "file: blob is not UTF-8 text"),
        ("file(\"other\")", "no file other"),
        ("fileset(\"conf\")", "takes 2 arguments"),
    ]);
}

#[test]
fn servers_refuse_all_functions_of_files() {
    for call in [
        "abspath(\"a\")",
        "basename(\"a\")",
        "dirname(\"a\")",
        "file(\"a\")",
        "filebase64(\"a\")",
        "fileexists(\"a\")",
        "length(fileset(\"a\", \"b\"))",
        "pathexpand(\"a\")",
    ] {
        let wrong = value_with(&NoFiles, call).expect_err(call);
        assert!(wrong.contains("filesystem function disabled"), "{call}: {wrong}");
    }
}

/// What OpenSSL encrypted with the public half of this key, which was made for this test alone.
#[test]
fn rsa() {
    let decrypted = |key: &str, secret: &str| {
        let text = format!(
            "locals {{\n key = <<EOF\n{key}\nEOF\n}}\njob \"j\" {{\n meta = {{\n v = rsadecrypt(\"{secret}\", local.key)\n }}\n}}\n"
        );
        let parsed = parse(&Source::new("j.hcl", text), &Variables::default(), &NoFiles);
        parsed.map(|parsed| parsed.job.meta["v"].clone()).map_err(|wrong| wrong.plain())
    };
    let (secret, pkcs1, pkcs8) = (
        include_str!("data/rsa/secret.txt").trim(),
        include_str!("data/rsa/pkcs1.txt"),
        include_str!("data/rsa/pkcs8.txt"),
    );
    assert_eq!(decrypted(pkcs1, secret).as_deref(), Ok("tea at five"));
    assert_eq!(decrypted(pkcs8, secret).as_deref(), Ok("tea at five"));
    assert!(decrypted(pkcs1, "AAAA").unwrap_err().contains("not encrypted for this key"));
    assert!(decrypted("no key", secret).unwrap_err().contains("not an RSA private key"));
}
