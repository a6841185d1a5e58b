//! Parsing of numbers and fields of one line, exact and without allocation.

use crate::problems::Reason;

/// Reason if digits were expected.
pub(crate) const NO_NUMBER: Reason = "a number is missing or not a number";
/// Reason for a minus sign.
pub(crate) const NEGATIVE: Reason = "negative number";
/// Reason for a number that is too large.
pub(crate) const OVERFLOW: Reason = "number too large";
/// Reason if a line ends early.
pub(crate) const TOO_FEW: Reason = "too few fields";
/// Reason if a line has more fields than expected.
pub(crate) const TOO_MANY: Reason = "too many fields";
/// Reason for a comma between digits, where no comma separates fields.
pub(crate) const DECIMAL_COMMA: Reason =
    "comma in a number; decimals are written with a point (convert the file: 0,5 to 0.5)";

const POW10: [u64; 20] = {
    let mut t = [1u64; 20];
    let mut i = 1;
    while i < 20 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

/// Parser for the rest of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    /// Bytes that are not parsed yet.
    pub(crate) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Cursor { rest: line }
    }

    /// Skips spaces and tabs.
    #[inline]
    pub(crate) fn blanks(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Expects one byte, with optional blanks around it.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Reason> {
        if let [b, rest @ ..] = self.rest
            && *b == byte
        {
            self.rest = rest;
            if let [b' ' | b'\t', ..] = rest {
                self.blanks();
            }
            return Ok(());
        }
        self.blanks();
        match self.rest {
            [b, rest @ ..] if *b == byte => {
                self.rest = rest;
                self.blanks();
                Ok(())
            }
            [] => Err(TOO_FEW),
            _ => Err(NO_NUMBER),
        }
    }

    /// Expects at least one blank, and a field after it.
    #[inline]
    pub(crate) fn gap(&mut self) -> Result<(), Reason> {
        match self.rest {
            [b' ' | b'\t', ..] => {
                self.blanks();
                if self.rest.is_empty() { Err(TOO_FEW) } else { Ok(()) }
            }
            [] => Err(TOO_FEW),
            _ => Err(self.after_number(NO_NUMBER)),
        }
    }

    /// Expects the end of the line, after optional blanks.
    #[inline]
    pub(crate) fn done(&mut self) -> Result<(), Reason> {
        self.blanks();
        if self.rest.is_empty() { Ok(()) } else { Err(self.after_number(TOO_MANY)) }
    }

    /// Returns the reason for unexpected bytes after a field: a decimal comma, else `other`.
    #[cold]
    fn after_number(&self, other: Reason) -> Reason {
        match self.rest {
            [b',', b'0'..=b'9', ..] => DECIMAL_COMMA,
            _ => other,
        }
    }

    /// Parses digits up to the next other byte.
    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Reason> {
        let mut n = 0u64;
        let mut i = 0;
        while let Some(d) = self.digit(i) {
            // 19 digits always fit; from the 20th on, each step is checked for overflow.
            if i < 19 {
                n = n * 10 + d;
            } else {
                n = n.checked_mul(10).and_then(|n| n.checked_add(d)).ok_or(OVERFLOW)?;
            }
            i += 1;
        }
        if i == 0 {
            return Err(self.no_digit());
        }
        self.rest = &self.rest[i..];
        Ok(n)
    }

    #[inline]
    fn digit(&self, i: usize) -> Option<u64> {
        let d = self.rest.get(i)?.wrapping_sub(b'0');
        (d < 10).then_some(u64::from(d))
    }

    #[cold]
    fn no_digit(&self) -> Reason {
        match self.rest {
            [] => TOO_FEW,
            [b'-', ..] => NEGATIVE,
            _ => NO_NUMBER,
        }
    }

    /// Parses a decimal number and returns it times `10^power`, exactly; a fraction below one is
    /// cut off.
    #[inline]
    pub(crate) fn decimal(&mut self, power: u32) -> Result<u64, Reason> {
        let start = *self;
        let whole = if self.rest.first() == Some(&b'.') { 0 } else { self.u64()? };
        let mut value = whole.checked_mul(POW10[power as usize]).ok_or(OVERFLOW)?;
        if let [b'.', rest @ ..] = self.rest {
            self.rest = rest;
            let (mut frac, mut i) = (0u64, 0);
            while let Some(d) = self.digit(i) {
                if i < power as usize {
                    frac = frac * 10 + d;
                }
                i += 1;
            }
            if i == 0 && start.rest.first() == Some(&b'.') {
                return Err(NO_NUMBER);
            }
            let missing = (power as usize).saturating_sub(i);
            value = value.checked_add(frac * POW10[missing]).ok_or(OVERFLOW)?;
            self.rest = &self.rest[i..];
        }
        if let [b'e' | b'E', ..] = self.rest {
            *self = start;
            return self.scientific(power);
        }
        Ok(value)
    }

    /// Parses a number with an exponent, such as 3.8e-05, for [`Cursor::decimal`].
    #[cold]
    fn scientific(&mut self, power: u32) -> Result<u64, Reason> {
        let (mut mantissa, mut scale, mut point) = (0u128, power as i32, false);
        loop {
            match self.rest {
                [b'.', rest @ ..] if !point => (point, self.rest) = (true, rest),
                [d @ b'0'..=b'9', rest @ ..] => {
                    // After 30 digits only the magnitude matters.
                    if mantissa < 10u128.pow(30) {
                        mantissa = mantissa * 10 + u128::from(d - b'0');
                        scale -= i32::from(point);
                    } else {
                        scale += i32::from(!point);
                    }
                    self.rest = rest;
                }
                [b'e' | b'E', rest @ ..] => {
                    self.rest = rest;
                    break;
                }
                _ => return Err(NO_NUMBER),
            }
        }
        let negative = self.rest.first() == Some(&b'-');
        if let [b'-' | b'+', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let exponent = i32::try_from(self.u64()?.min(10_000)).map_err(|_| OVERFLOW)?;
        scale = scale.saturating_add(if negative { -exponent } else { exponent });
        if mantissa == 0 {
            return Ok(0);
        }
        let value = match u32::try_from(scale) {
            Ok(up) => 10u128.checked_pow(up).and_then(|p| mantissa.checked_mul(p)).ok_or(OVERFLOW)?,
            Err(_) => 10u128.checked_pow(scale.unsigned_abs()).map_or(0, |p| mantissa / p),
        };
        u64::try_from(value).map_err(|_| OVERFLOW)
    }

    /// Returns all bytes up to the next blank; at least one byte.
    #[inline]
    pub(crate) fn word(&mut self) -> Result<&'a [u8], Reason> {
        let n = self.rest.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(self.rest.len());
        self.take(n)
    }

    /// Returns all bytes up to the next separator or the end, without blanks around them. The
    /// separator is not consumed.
    #[inline]
    pub(crate) fn field(&mut self, separator: u8) -> Result<&'a [u8], Reason> {
        let n = self.rest.iter().position(|&b| b == separator).unwrap_or(self.rest.len());
        self.take(n).map(<[u8]>::trim_ascii)
    }

    #[inline]
    fn take(&mut self, n: usize) -> Result<&'a [u8], Reason> {
        if n == 0 {
            return Err(TOO_FEW);
        }
        let (word, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(word)
    }

    /// Removes the last blank-separated word from the end and returns it.
    #[inline]
    pub(crate) fn last_word(&mut self) -> Result<&'a [u8], Reason> {
        let line = self.rest.trim_ascii_end();
        let from = line.iter().rposition(|b| matches!(b, b' ' | b'\t')).map_or(0, |i| i + 1);
        let (rest, word) = line.split_at(from);
        self.rest = rest;
        if word.is_empty() { Err(TOO_FEW) } else { Ok(word) }
    }
}

/// Parses a whole field as a number.
#[inline]
pub(crate) fn number(field: &[u8]) -> Result<u64, Reason> {
    let mut c = Cursor::new(field);
    let n = c.u64()?;
    if c.rest.is_empty() { Ok(n) } else { Err(c.after_number(NO_NUMBER)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(s: &str, power: u32) -> Result<u64, Reason> {
        let mut c = Cursor::new(s.as_bytes());
        let v = c.decimal(power)?;
        c.done().map(|()| v)
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal("0.026214", 9), Ok(26_214_000));
        assert_eq!(decimal("1398396860.158634645", 9), Ok(1_398_396_860_158_634_645));
        assert_eq!(decimal("128166465299039421", 2), Ok(12_816_646_529_903_942_100));
        assert_eq!(decimal("26.214", 6), Ok(26_214_000));
        assert_eq!(decimal("1.9999999999", 3), Ok(1999));
        assert_eq!(decimal("5.", 0), Ok(5));
        assert_eq!(decimal(".5", 3), Ok(500));
        assert_eq!(decimal("3.8e-05", 9), Ok(38_000));
        assert_eq!(decimal("1.5E3", 0), Ok(1500));
        assert_eq!(decimal("0e99999", 9), Ok(0));
        assert_eq!(decimal("1e-9999", 9), Ok(0));
    }

    #[test]
    fn bad_decimals_say_why() {
        for (text, why) in [
            ("", TOO_FEW),
            ("-1", NEGATIVE),
            ("x", NO_NUMBER),
            (".", NO_NUMBER),
            ("1.2.3", TOO_MANY),
            ("0,5", DECIMAL_COMMA),
            ("5,", TOO_MANY),
            ("99999999999999999999", OVERFLOW),
            ("20000000000", OVERFLOW),
            ("1e99", OVERFLOW),
            ("1e", TOO_FEW),
        ] {
            assert_eq!(decimal(text, 9), Err(why), "{text}");
        }
        assert_eq!(number(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), Err(OVERFLOW));
        assert_eq!(number(b"0000000000000000000000012"), Ok(12));
    }

    #[test]
    fn words_come_from_both_ends() {
        let mut c = Cursor::new(b"1 a name  8 W");
        assert_eq!(c.last_word(), Ok(&b"W"[..]));
        assert_eq!(c.last_word(), Ok(&b"8"[..]));
        assert_eq!(c.u64(), Ok(1));
        assert_eq!(c.gap(), Ok(()));
        assert_eq!(c.rest, b"a name  ");
    }

    proptest! {
        #[test]
        fn decimals_agree_with_integers(n in 0u64..10_000_000_000_000_000_000, power in 0u32..10) {
            let p = POW10[power as usize];
            let text = if power == 0 { n.to_string() } else { format!("{}.{:0w$}", n / p, n % p, w = power as usize) };
            prop_assert_eq!(decimal(&text, power), Ok(n));
            prop_assert_eq!(decimal(&format!("{text}e0"), power), Ok(n));
        }

        #[test]
        fn nothing_panics(text in proptest::collection::vec(any::<u8>(), 0..40), power in 0u32..10) {
            let mut c = Cursor::new(&text);
            let _ = c.decimal(power);
            let _ = Cursor::new(&text).u64();
            let _ = Cursor::new(&text).last_word();
        }
    }
}
