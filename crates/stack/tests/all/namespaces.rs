//! Name spaces: their ranges, and errors of their tables.

use frit_stack::{Bytes, Stack};

fn with(namespaces: &str) -> Result<Stack, String> {
    Stack::builtin("ftl-small", &[format!("namespace={namespaces}")])
        .map_err(|e| e.problems().iter().map(|p| format!("{} ({:?})", p.message(), p.hint())).collect())
}

#[test]
fn name_spaces_lie_one_after_the_other_and_keep_their_order() {
    let stack = with(r#"[{name="z",size="1M"},{name="a",size=4096}]"#).unwrap();
    let shown: Vec<_> = stack.namespaces().iter().map(|n| (n.name.as_str(), n.range.clone())).collect();
    assert_eq!(shown, [("z", 0..1 << 20), ("a", 1 << 20..(1 << 20) + 4096)]);
    // The volume has the canonical text.
    let identity = stack.identity();
    let again = Stack::parse("again", &identity.text, &[]).unwrap();
    assert_eq!(again.namespaces(), stack.namespaces());
    assert_eq!(again.identity().sha256, identity.sha256);
    assert!(Stack::builtin("ftl-small", &[]).unwrap().namespaces().is_empty());
}

#[test]
fn a_bad_name_space_is_refused_with_its_name() {
    for (text, why) in [
        ("3", "list of tables"),
        (r#"["a"]"#, "list of tables"),
        (r#"[{name="a"}]"#, "'a' has no size"),
        (r#"[{size="1M"}]"#, "no name"),
        (r#"[{name="",size="1M"}]"#, "cannot be the name"),
        (r#"[{name="a b",size="1M"}]"#, "letters, digits"),
        (r#"[{name="a",size="1M"},{name="a",size="1M"}]"#, "two name spaces 'a'"),
        (r#"[{name="a",size="many"}]"#, "1G"),
        (r#"[{name="a",size=0}]"#, "cannot be 0"),
        (r#"[{name="a",size=-5}]"#, "cannot be -5"),
        (r#"[{name="a",size=1.5}]"#, "cannot be 1.5"),
        (r#"[{name="a",size=100}]"#, "multiple of 512"),
        (r#"[{name="a",size="1M",lun=1}]"#, "no key `lun`"),
        (r#"[{name="a",size="8388607T"},{name="b",size="1T"}]"#, "'b' is too large"),
    ] {
        let e = with(text).unwrap_err();
        assert!(e.contains(why), "{text}: {e}");
    }
    let zoned = [r#"namespace=[{name="a",size="1M"}]"#.to_owned()];
    let e = Stack::builtin("zns-small", &zoned).unwrap_err().to_string();
    assert!(e.contains("zns") && e.contains("cannot be divided"), "{e}");
}

#[test]
fn name_spaces_fit_into_the_volume() {
    let build = |text: &str| {
        let built = with(text).unwrap().build(&Bytes::None);
        built.map(drop).map_err(|e| e.problems()[0].message().to_owned())
    };
    assert_eq!(build(r#"[{name="a",size="64M"},{name="b",size="128M"}]"#), Ok(()));
    let e = build(r#"[{name="a",size="128M"},{name="b",size="128M"}]"#).unwrap_err();
    assert!(e.contains("256 MiB") && e.contains("the volume has"), "{e}");
    let e = build(r#"[{name="a",size="64M"},{name="b",size=512}]"#).unwrap_err();
    assert!(e.contains("'b' ends inside a page"), "{e}");
}
