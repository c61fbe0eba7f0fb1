//! What a peer may send to harm us.

use msgpack::{DEPTH_MAX, Error, Scan, from_slice, measure};
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn nesting_beyond_the_limit_is_refused_and_costs_no_stack() {
    for (open, leaf) in [(&b"\x91"[..], &b"\xc0"[..]), (b"\x81\xa1k", b"\xc0")] {
        let fine = [open.repeat(DEPTH_MAX), leaf.to_vec()].concat();
        assert!(from_slice::<Value>(&fine).is_ok());
        let deep = [open.repeat(1_000_000), leaf.to_vec()].concat();
        assert_eq!(from_slice::<Value>(&deep), Err(Error::TooDeep));
        assert_eq!(measure(&deep), Ok(Some(deep.len())));
        assert!(from_slice::<serde::de::IgnoredAny>(&deep).is_ok(), "skipped without recursion");
    }
}

#[test]
fn promised_lengths_reserve_nothing() {
    for head in [[0xdd, 255, 255, 255, 255], [0xdf, 255, 255, 255, 255], [0xdb, 255, 255, 255, 255]] {
        assert_eq!(from_slice::<Value>(&head), Err(Error::Truncated));
        assert_eq!(from_slice::<Vec<u64>>(&head), Err(Error::Truncated));
        let mut scan = Scan::default();
        assert_eq!(scan.advance(&head), Ok(None));
        assert!(scan.least() >= u64::from(u32::MAX), "and can be refused before they arrive");
    }
}

#[test]
fn what_follows_a_value_is_an_error() {
    assert_eq!(from_slice::<u8>(&[1, 2]), Err(Error::Trailing(1)));
    assert_eq!(from_slice::<(u8, u8)>(&[0x93, 1, 2, 3]), Err(Error::Surplus(1)));
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let whole = from_slice::<Value>(&bytes).is_ok();
        let length = measure(&bytes);
        if whole {
            prop_assert_eq!(length, Ok(Some(bytes.len())));
        }
        let _ = from_slice::<model::document::Job>(&bytes);
    }

    #[test]
    fn a_value_in_pieces_measures_like_the_whole(value in value(), cuts in prop::collection::vec(1_usize..9, 1..40)) {
        let bytes = msgpack::to_vec(&value).unwrap();
        let mut scan = Scan::default();
        let mut seen = 0;
        for cut in cuts.iter().cycle() {
            if seen >= bytes.len() {
                break;
            }
            prop_assert_eq!(scan.advance(&bytes[..seen]).unwrap(), None);
            prop_assert!(scan.least() <= bytes.len() as u64);
            seen = (seen + cut).min(bytes.len());
        }
        prop_assert_eq!(scan.advance(&bytes).unwrap(), Some(bytes.len()));
    }

    #[test]
    fn values_survive_a_round_trip(value in value()) {
        let bytes = msgpack::to_vec(&value).unwrap();
        prop_assert_eq!(from_slice::<Value>(&bytes).unwrap(), value);
    }

    #[test]
    fn numbers_survive_a_round_trip(signed in any::<i64>(), unsigned in any::<u64>(), float in any::<f64>()) {
        let bytes = msgpack::to_vec(&(signed, unsigned, float)).unwrap();
        let (s, u, f): (i64, u64, f64) = from_slice(&bytes).unwrap();
        prop_assert_eq!((s, u, f.to_bits()), (signed, unsigned, float.to_bits()));
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e12..1e12).prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z]{1,40}", inner, 0..20)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
