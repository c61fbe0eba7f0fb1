//! Ranges of IP addresses.

use std::net::IpAddr;

use crate::eval::convert::{to_int, to_text};
use crate::eval::{Value, ValueError};

/// A range: its first address as a number, the bits that all its addresses share, and the bits of an address.
#[derive(Clone, Copy)]
struct Range {
    first: u128,
    fixed: u32,
    bits: u32,
}

impl Range {
    fn read(text: &str) -> Result<Range, ValueError> {
        let wrong = || format!("\"{text}\" is not a range of addresses such as 10.0.0.0/8");
        let (address, fixed) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let (number, bits) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let plain = !fixed.is_empty() && fixed.bytes().all(|byte| byte.is_ascii_digit());
        let fixed: u32 = fixed.parse().ok().filter(|fixed| plain && *fixed <= bits).ok_or_else(wrong)?;
        Ok(Range { first: number & mask(bits, fixed), fixed, bits })
    }

    /// The range of `fixed + more` bits with this number in it.
    fn part(self, more: u32, number: u128) -> Result<Range, ValueError> {
        let fixed = self.fixed + more;
        if fixed > self.bits {
            return Err(format!("{more} more bits do not fit behind /{}", self.fixed).into());
        }
        if more < u128::BITS && number >> more != 0 {
            return Err(format!("{more} bits do not hold the number {number}").into());
        }
        let offset = number.checked_shl(self.bits - fixed).unwrap_or(0);
        Ok(Range { first: self.first | offset, fixed, bits: self.bits })
    }

    fn text(self) -> String {
        format!("{}/{}", address(self.first, self.bits), self.fixed)
    }
}

fn mask(bits: u32, fixed: u32) -> u128 {
    let all = if bits == u128::BITS { u128::MAX } else { (1 << bits) - 1 };
    all & !(if bits == fixed { 0 } else { all >> fixed })
}

fn address(number: u128, bits: u32) -> IpAddr {
    if bits == 32 { IpAddr::V4((number as u32).into()) } else { IpAddr::V6(number.into()) }
}

fn more_bits(value: &Value) -> Result<u32, ValueError> {
    let bits = to_int(value)?;
    u32::try_from(bits).ok().filter(|bits| *bits <= 128).ok_or_else(|| format!("{bits} more bits").into())
}

/// The address with a number in a range; negative numbers count from the end.
pub(super) fn cidrhost(a: &[Value]) -> Result<Value, ValueError> {
    let (range, number) = (Range::read(&to_text(&a[0])?)?, to_int(&a[1])?);
    let free = range.bits - range.fixed;
    let beyond = || format!("{} has no address {number}", range.text());
    let held = if free == u128::BITS { u128::MAX } else { 1 << free };
    let offset = match number {
        0.. => number.unsigned_abs().into(),
        _ => held.checked_sub(number.unsigned_abs().into()).ok_or_else(beyond)?,
    };
    if offset >= held {
        return Err(beyond().into());
    }
    Ok(Value::Text(address(range.first | offset, range.bits).to_string()))
}

pub(super) fn cidrnetmask(a: &[Value]) -> Result<Value, ValueError> {
    let range = Range::read(&to_text(&a[0])?)?;
    if range.bits != 32 {
        return Err("only ranges of IPv4 have a netmask".into());
    }
    Ok(Value::Text(address(mask(range.bits, range.fixed), range.bits).to_string()))
}

pub(super) fn cidrsubnet(a: &[Value]) -> Result<Value, ValueError> {
    let range = Range::read(&to_text(&a[0])?)?;
    let number =
        u128::try_from(to_int(&a[2])?).map_err(|_| "the number of a subnet is not negative".to_string())?;
    Ok(Value::Text(range.part(more_bits(&a[1])?, number)?.text()))
}

/// Ranges that follow on each other, each with so many bits more than the whole.
pub(super) fn cidrsubnets(a: &[Value]) -> Result<Value, ValueError> {
    let whole = Range::read(&to_text(&a[0])?)?;
    let last = whole.first | !mask(whole.bits, whole.fixed) & mask(whole.bits, whole.bits);
    let mut next = Some(whole.first);
    let mut subnets = Vec::new();
    for more in &a[1..] {
        let fixed = whole.fixed + more_bits(more)?;
        if fixed > whole.bits || fixed == whole.fixed {
            return Err(
                format!("a subnet has 1 to {} bits more than its range", whole.bits - whole.fixed).into()
            );
        }
        let size = 1_u128 << (whole.bits - fixed);
        let full = || format!("{} has no room for a /{fixed} after the others", whole.text());
        // A larger range than the one before starts at the next multiple of its size.
        let start =
            next.and_then(|next| next.checked_add(size - 1)).map(|up| up & !(size - 1)).ok_or_else(full)?;
        let end = start.checked_add(size - 1).filter(|end| *end <= last).ok_or_else(full)?;
        next = end.checked_add(1);
        subnets.push(Value::Text(Range { first: start, fixed, bits: whole.bits }.text()));
    }
    Ok(Value::List(subnets))
}
