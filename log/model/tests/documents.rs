//! Every document reads back as what it was written as, whatever its fields hold.

use base::Rng;
use model::document::{
    AllocationMetric, CSIVolume, HostVolume, Job, JobSubmission, Map, Node, TaskEvent, TaskState,
};
use model::{Doc, Given, Report, Template};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};

#[test]
fn every_document_survives_whatever_it_holds() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        survives::<Job>(&mut rng);
        survives::<JobSubmission>(&mut rng);
        survives::<Node>(&mut rng);
        survives::<Report>(&mut rng);
        survives::<Template>(&mut rng);
        survives::<Given>(&mut rng);
        survives::<CSIVolume>(&mut rng);
        survives::<HostVolume>(&mut rng);
        survives::<AllocationMetric>(&mut rng);
        survives::<Map<String, AllocationMetric>>(&mut rng);
    }
}

fn survives<T>(rng: &mut Rng)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let document = T::deserialize(Draw { rng, depth: 0 }).unwrap();
    let doc = Doc::of(&document);
    let back = doc.read::<T>();
    assert_eq!(back, document);
    let whole = rmp_serde::to_vec_named(&document).unwrap();
    assert_eq!(rmp_serde::to_vec_named(&back).unwrap(), whole, "also what equality does not tell, as -0.0");
    assert_eq!(Doc::read_from::<T>(&whole), document, "with all fields it reads the same");
    assert!(doc.0.len() <= whole.len() + 2);
}

/// Whatever prints a volume, in a log or a failed test.
#[test]
fn secrets_of_a_volume_are_not_shown() {
    let mut volume = CSIVolume { id: "data".into(), ..CSIVolume::default() };
    volume.secrets.0.insert("key".into(), "opensesame".into());
    let shown = format!("{volume:?}");
    assert!(shown.contains("data") && !shown.contains("opensesame"), "{shown}");
}

#[test]
fn what_is_zero_costs_nothing() {
    assert_eq!(Doc::of(&Job::default()).0.len(), 1);
    assert_eq!(Doc::of(&Template::default()).0.len(), 1);
    let started = TaskEvent { kind: "Started".into(), time: 1, ..TaskEvent::default() };
    let task = TaskState { state: "running".into(), events: vec![started].into(), ..TaskState::default() };
    let report =
        Report { task_states: [("task".to_string(), task)].into_iter().collect(), ..Report::default() };
    let whole = rmp_serde::to_vec_named(&report).unwrap();
    assert!(3 * Doc::of(&report).0.len() < whole.len());
}

#[test]
fn what_is_set_to_zero_stays_set() {
    let stopped = Job { stop: Some(false), priority: Some(0), name: Some(String::new()), ..Job::default() };
    assert_eq!(Doc::of(&stopped).read::<Job>(), stopped);
    let scores = [("a".to_string(), 0.0), ("b".to_string(), -0.0)];
    let metric = AllocationMetric { scores: scores.into_iter().collect(), ..AllocationMetric::default() };
    let back = Doc::of(&metric).read::<AllocationMetric>();
    assert_eq!(back.scores.values().map(|score| score.to_bits()).collect::<Vec<_>>(), [0, 1 << 63]);
}

/// Whatever a type asks for, often zero. Fields of structs are often not there.
struct Draw<'a> {
    rng: &'a mut Rng,
    depth: u64,
}

impl Draw<'_> {
    fn word(self) -> &'static str {
        ["", "a", "b", "longer than what fits into a short head"][self.rng.below(4) as usize]
    }

    fn bytes(self) -> &'static [u8] {
        [&[][..], &[0], &[255, 0, 1]][self.rng.below(3) as usize]
    }

    /// Few things on the lower floors, so that it ends.
    fn count(&mut self) -> u64 {
        self.rng.below(4).saturating_sub(self.depth / 8)
    }

    fn inner(&mut self) -> Draw<'_> {
        Draw { rng: self.rng, depth: self.depth + 1 }
    }
}

macro_rules! draw {
    ($($method:ident => $visit:ident($self:ident) $value:expr;)+) => {
        $(fn $method<V: Visitor<'de>>($self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit($value)
        })+
    };
}

impl<'de> Deserializer<'de> for Draw<'_> {
    type Error = Error;

    draw! {
        deserialize_bool => visit_bool(self) self.rng.below(2) == 0;
        deserialize_i8 => visit_i64(self) self.rng.below(3) as i64 - 1;
        deserialize_i16 => visit_i64(self) self.rng.below(3) as i64 - 1;
        deserialize_i32 => visit_i64(self) self.rng.below(3) as i64 - 1;
        deserialize_i64 => visit_i64(self) [0, 0, i64::MIN, 1 << 40][self.rng.below(4) as usize];
        deserialize_u8 => visit_u64(self) self.rng.below(3);
        deserialize_u16 => visit_u64(self) self.rng.below(3);
        deserialize_u32 => visit_u64(self) self.rng.below(3);
        deserialize_u64 => visit_u64(self) [0, 0, u64::MAX, 1 << 40][self.rng.below(4) as usize];
        deserialize_f32 => visit_f32(self) [0.0, -0.0, 0.1][self.rng.below(3) as usize];
        deserialize_f64 => visit_f64(self) [0.0, -0.0, 0.1][self.rng.below(3) as usize];
        deserialize_char => visit_char(self) ['\0', 'a', 'ü'][self.rng.below(3) as usize];
        deserialize_str => visit_str(self) self.word();
        deserialize_string => visit_str(self) self.word();
        deserialize_bytes => visit_bytes(self) self.bytes();
        deserialize_byte_buf => visit_bytes(self) self.bytes();
    }

    serde::forward_to_deserialize_any! { unit unit_struct tuple tuple_struct enum identifier ignored_any }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        if self.count() == 0 { visitor.visit_none() } else { visitor.visit_some(self.inner()) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let left = self.count();
        visitor.visit_seq(Drawn { left, draw: self.inner() })
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let left = self.count();
        visitor.visit_map(Drawn { left, draw: self.inner() })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { names: fields.iter(), draw: self.inner() })
    }

    /// The shapes of Nomad's API say only in words what they are.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let expected = (&visitor as &dyn serde::de::Expected).to_string();
        match (expected.as_str(), self.rng.below(7)) {
            (duration, _) if duration.starts_with("a duration") => self.deserialize_i64(visitor),
            ("an RFC 3339 time", 0..3) => visitor.visit_unit(),
            ("an RFC 3339 time", _) => visitor.visit_str("2026-11-21T03:02:43.123456789Z"),
            (bytes, _) if bytes.starts_with("bytes") => self.deserialize_bytes(visitor),
            ("any valid JSON value", 0) => visitor.visit_unit(),
            ("any valid JSON value", 1) => self.deserialize_bool(visitor),
            ("any valid JSON value", 2) => self.deserialize_i64(visitor),
            ("any valid JSON value", 3) => self.deserialize_f64(visitor),
            ("any valid JSON value", 4) => self.deserialize_str(visitor),
            ("any valid JSON value", 5) => self.deserialize_seq(visitor),
            ("any valid JSON value", _) => self.deserialize_map(visitor),
            (unknown, _) => panic!("nothing is drawn where a document expects {unknown}: add it here"),
        }
    }
}

struct Drawn<'a> {
    left: u64,
    draw: Draw<'a>,
}

impl<'de> SeqAccess<'de> for Drawn<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(self.draw.inner()).map(Some)
    }
}

impl<'de> MapAccess<'de> for Drawn<'_> {
    type Error = Error;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.draw.inner())
    }
}

struct Fields<'a> {
    names: std::slice::Iter<'static, &'static str>,
    draw: Draw<'a>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        for name in self.names.by_ref() {
            if self.draw.rng.below(3) > 0 {
                let name: StrDeserializer<'_, Error> = (*name).into_deserializer();
                return seed.deserialize(name).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.draw.inner())
    }
}
