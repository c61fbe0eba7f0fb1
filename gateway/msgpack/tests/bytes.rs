//! The bytes themselves, written out.

use std::collections::BTreeMap;

use msgpack::{Error, Raw, from_slice, measure, to_vec};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Header {
    service_method: String,
    seq: u64,
}

#[test]
fn a_request_header_is_a_map_keyed_by_go_field_names() {
    let header = Header { service_method: "Status.Ping".into(), seq: 7 };
    let bytes = b"\x82\xadServiceMethod\xabStatus.Ping\xa3Seq\x07";
    assert_eq!(to_vec(&header).unwrap(), bytes);
    assert_eq!(from_slice::<Header>(bytes).unwrap(), header);
}

#[test]
fn integers_take_their_shortest_form() {
    let cases: [(i64, &[u8]); 15] = [
        (0, &[0]),
        (127, &[0x7f]),
        (128, &[0xcc, 0x80]),
        (255, &[0xcc, 0xff]),
        (256, &[0xcd, 1, 0]),
        (65_535, &[0xcd, 0xff, 0xff]),
        (65_536, &[0xce, 0, 1, 0, 0]),
        (1 << 32, &[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]),
        (-1, &[0xff]),
        (-32, &[0xe0]),
        (-33, &[0xd0, 0xdf]),
        (-128, &[0xd0, 0x80]),
        (-129, &[0xd1, 0xff, 0x7f]),
        (-32_769, &[0xd2, 0xff, 0xff, 0x7f, 0xff]),
        (i64::MIN, &[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for (value, bytes) in cases {
        assert_eq!(to_vec(&value).unwrap(), bytes, "{value}");
        assert_eq!(from_slice::<i64>(bytes).unwrap(), value);
    }
    assert_eq!(to_vec(&u64::MAX).unwrap(), [0xcf, 255, 255, 255, 255, 255, 255, 255, 255]);
}

#[test]
fn longer_and_signed_forms_of_an_integer_are_read_too() {
    for bytes in [&[0xd0, 5][..], &[0xd1, 0, 5], &[0xd2, 0, 0, 0, 5], &[0xce, 0, 0, 0, 5]] {
        assert_eq!(from_slice::<u16>(bytes).unwrap(), 5);
    }
    assert!(from_slice::<u8>(&[0xd0, 0xff]).is_err(), "-1 is no u8");
}

#[test]
fn text_and_bytes_are_written_in_the_old_raw_family() {
    assert_eq!(to_vec("abc").unwrap(), b"\xa3abc");
    assert_eq!(to_vec(&"x".repeat(31)).unwrap()[..1], [0xbf]);
    assert_eq!(to_vec(&"x".repeat(32)).unwrap()[..3], [0xda, 0, 32]);
    assert_eq!(to_vec(&"x".repeat(200)).unwrap()[..3], [0xda, 0, 200]);
    assert_eq!(to_vec(&"x".repeat(65_536)).unwrap()[..5], [0xdb, 0, 1, 0, 0]);
}

#[test]
fn the_new_text_and_binary_types_are_read() {
    for bytes in
        [&b"\xd9\x03abc"[..], b"\xc4\x03abc", b"\xc5\0\x03abc", b"\xc6\0\0\0\x03abc", b"\xda\0\x03abc"]
    {
        assert_eq!(from_slice::<String>(bytes).unwrap(), "abc");
        assert_eq!(from_slice::<Vec<u8>>(bytes).unwrap(), b"abc");
    }
}

#[test]
fn text_that_is_not_utf8_is_mended() {
    assert_eq!(from_slice::<String>(b"\xa3a\xffb").unwrap(), "a\u{fffd}b");
}

#[test]
fn lists_and_maps_begin_with_their_length() {
    assert_eq!(to_vec(&[1, 2]).unwrap(), [0x92, 1, 2]);
    assert_eq!(to_vec(&vec![0_u8; 16]).unwrap()[..3], [0xdc, 0, 16]);
    let map: BTreeMap<&str, bool> = [("a", true), ("b", false)].into();
    assert_eq!(to_vec(&map).unwrap(), b"\x82\xa1a\xc3\xa1b\xc2");
    assert_eq!(to_vec(&1.5_f64).unwrap(), [0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(from_slice::<f64>(&[0xca, 0x3f, 0xc0, 0, 0]).unwrap(), 1.5);
    assert_eq!(to_vec(&None::<u8>).unwrap(), [0xc0]);
}

#[test]
fn nil_is_the_zero_value_wherever_it_stands() {
    #[derive(Debug, PartialEq, Default, Deserialize)]
    #[serde(default)]
    struct All {
        text: String,
        number: i32,
        list: Vec<u8>,
        map: BTreeMap<String, String>,
        inner: Header,
        flag: bool,
    }
    let nils = b"\x86\xa4text\xc0\xa6number\xc0\xa4list\xc0\xa3map\xc0\xa5inner\xc0\xa4flag\xc0";
    assert_eq!(from_slice::<All>(nils).unwrap(), All::default());
    assert_eq!(from_slice::<Vec<(String, u64, f64, bool)>>(b"\x91\x94\xc0\xc0\xc0\xc0").unwrap().len(), 1);
    assert_eq!(from_slice::<Vec<Header>>(b"\x91\xc0").unwrap(), [Header::default()]);
}

#[test]
fn unknown_keys_are_skipped_whatever_they_hold() {
    let bytes =
        b"\x84\xa3New\x82\xa1a\x93\x01\xc0\xd6\x01abcd\xa1b\xcb12345678\xa3Seq\x09\xa4Nils\xc0\x05\xa1x";
    assert_eq!(from_slice::<Header>(bytes).unwrap(), Header { seq: 9, ..Header::default() });
}

#[test]
fn a_flattened_struct_stands_in_its_parent() {
    #[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
    #[serde(default, rename_all = "PascalCase")]
    struct Outer {
        name: String,
        #[serde(flatten)]
        header: Header,
    }
    let outer = Outer { name: "n".into(), header: Header { service_method: "m".into(), seq: 3 } };
    let bytes = to_vec(&outer).unwrap();
    assert_eq!(bytes, b"\x83\xa4Name\xa1n\xadServiceMethod\xa1m\xa3Seq\x03");
    assert_eq!(from_slice::<Outer>(&bytes).unwrap(), outer);
}

#[test]
fn enums_are_names_or_maps_of_one() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Choice {
        None,
        One(u8),
        Two(u8, u8),
        Named { x: u8 },
    }
    let choices = vec![Choice::None, Choice::One(1), Choice::Two(1, 2), Choice::Named { x: 4 }];
    let bytes = to_vec(&choices).unwrap();
    assert_eq!(bytes, b"\x94\xa4None\x81\xa3One\x01\x81\xa3Two\x92\x01\x02\x81\xa5Named\x81\xa1x\x04");
    assert_eq!(from_slice::<Vec<Choice>>(&bytes).unwrap(), choices);
}

#[test]
fn raw_values_pass_untouched_and_embed_into_one_map() {
    let parts = [to_vec(&Header { service_method: "m".into(), seq: 1 }).unwrap(), b"\x81\xa1k\x02".to_vec()];
    let whole = Raw::embed(&parts).unwrap();
    assert_eq!(whole.0, b"\x83\xadServiceMethod\xa1m\xa3Seq\x01\xa1k\x02");
    let list = to_vec(&vec![whole.clone(), whole.clone()]).unwrap();
    assert_eq!(list.len(), 1 + 2 * whole.0.len());
    assert_eq!(from_slice::<Vec<Raw>>(&list).unwrap(), [whole.clone(), whole]);
    assert_eq!(Raw::embed(&[vec![1]]), Err(Error::NotMap));
}

#[test]
fn a_value_is_measured_only_when_it_is_whole() {
    let bytes = to_vec(&(Header::default(), "text", [1.5, 2.5], u64::MAX, vec!["x"; 20])).unwrap();
    for end in 0..bytes.len() {
        assert_eq!(measure(&bytes[..end]).unwrap(), None, "{end}");
    }
    let mut longer = bytes.clone();
    longer.extend([0xc1, 0xc1]);
    assert_eq!(measure(&longer).unwrap(), Some(bytes.len()));
    assert_eq!(measure(&[0x91, 0xc1]), Err(Error::Reserved));
}
