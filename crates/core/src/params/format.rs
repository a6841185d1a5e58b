//! Text forms of parameter values: parsing, printing, and the names that a value may have.

use crate::{Error, Result, size};
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;
use strum::VariantNames;

/// The text form of values of type `T`. Types that implement it are names in a table of parameters,
/// and have no values.
pub trait Format<T> {
    /// Names that the value may have, if it is a name from a list.
    const NAMES: &'static [&'static str] = &[];
    /// `true` if a new source file can add a name to the list, as for policies; `false` if the list
    /// is part of the layer's definition.
    const OPEN: bool = false;

    /// Parses a value.
    ///
    /// # Errors
    /// The text is not a value; the error names `key` and the valid forms.
    fn parse(key: &str, text: &str) -> Result<T>;

    /// Prints a value in a form that [`Format::parse`] reads.
    fn print(value: &T) -> String;
}

/// A number, printed as Rust prints it.
#[derive(Debug)]
pub enum Number {}

impl<T: FromStr + Display> Format<T> for Number {
    fn parse(key: &str, text: &str) -> Result<T> {
        let why = "is not a number, or is out of range";
        text.trim().parse().map_err(|_| Error::param(key, text, why))
    }

    fn print(value: &T) -> String {
        value.to_string()
    }
}

/// `true` or `false`.
#[derive(Debug)]
pub enum Switch {}

impl Format<bool> for Switch {
    fn parse(key: &str, text: &str) -> Result<bool> {
        text.trim().parse().map_err(|_| Error::param(key, text, "is neither true nor false"))
    }

    fn print(value: &bool) -> String {
        value.to_string()
    }
}

/// A size in bytes, read in any form of [`size::parse`] and printed as a number of bytes.
#[derive(Debug)]
pub enum Bytes {}

impl Format<u64> for Bytes {
    fn parse(key: &str, text: &str) -> Result<u64> {
        size::parse(text).map_err(|why| Error::param(key, text, why))
    }

    fn print(value: &u64) -> String {
        value.to_string()
    }
}

/// A size in bytes, printed with a unit.
#[derive(Debug)]
pub enum Size {}

impl Format<u64> for Size {
    fn parse(key: &str, text: &str) -> Result<u64> {
        Bytes::parse(key, text)
    }

    fn print(value: &u64) -> String {
        size::format(*value)
    }
}

/// One of the variants of an enum.
#[derive(Debug)]
pub enum Keyword {}

impl<T> Format<T> for Keyword
where
    T: FromStr + VariantNames + Copy + Into<&'static str>,
{
    const NAMES: &'static [&'static str] = T::VARIANTS;

    fn parse(key: &str, text: &str) -> Result<T> {
        parse_name(key, text)
    }

    fn print(value: &T) -> String {
        let name: &'static str = (*value).into();
        name.to_owned()
    }
}

/// The name of a policy of kind `P`. The configuration holds the name, and the layer the policy,
/// which may have state.
#[derive(Debug)]
pub struct Name<P>(PhantomData<P>);

impl<P: VariantNames> Format<String> for Name<P> {
    const NAMES: &'static [&'static str] = P::VARIANTS;
    const OPEN: bool = true;

    fn parse(key: &str, text: &str) -> Result<String> {
        match P::VARIANTS.contains(&text) {
            true => Ok(text.to_owned()),
            false => Err(no_such_name::<P>(key, text)),
        }
    }

    fn print(value: &String) -> String {
        value.clone()
    }
}

/// A text, taken as it is.
#[derive(Debug)]
pub enum Text {}

impl Format<String> for Text {
    fn parse(_: &str, text: &str) -> Result<String> {
        Ok(text.to_owned())
    }

    fn print(value: &String) -> String {
        value.clone()
    }
}

/// A list of texts, separated by commas.
#[derive(Debug)]
pub enum List {}

impl Format<Vec<String>> for List {
    fn parse(_: &str, text: &str) -> Result<Vec<String>> {
        Ok(text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect())
    }

    fn print(value: &Vec<String>) -> String {
        format!("{value:?}")
    }
}

/// Parses a policy or keyword.
///
/// # Errors
/// There is no such name; the error lists the valid names.
pub fn parse_name<P: FromStr + VariantNames>(key: &str, name: &str) -> Result<P> {
    name.parse().map_err(|_| no_such_name::<P>(key, name))
}

fn no_such_name<P: VariantNames>(key: &str, name: &str) -> Error {
    Error::param(key, name, format!("there are {}", P::VARIANTS.join(", ")))
}
