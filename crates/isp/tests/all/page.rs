//! Promises of the reference page: its examples are valid, and its C structure has the bytes of its table.

use crate::support::program;
use frit_isp::{Command, Target, binary, text};
use std::process::Command as Program;

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/isp.md")).unwrap()
}

/// Contents of a block of code that contains a text.
fn block<'a>(page: &'a str, text: &str) -> &'a str {
    page.split("```").skip(1).step_by(2).find(|block| block.contains(text)).unwrap()
}

/// Compiles C, and returns the path of the program in a directory.
fn compile(source: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (file, binary) = (dir.path().join("main.c"), dir.path().join("main"));
    std::fs::write(&file, source).unwrap();
    let arguments = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"];
    let output = Program::new("cc").args(arguments).arg(&binary).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (dir, binary)
}

#[test]
fn the_examples_are_valid() {
    let page = page();
    let (volumes, files) = page.split_once("\n## Keys of all instructions").unwrap();
    let examples = |part: &str| -> Vec<String> {
        let blocks = part.split("```json\n").skip(1);
        let lines = blocks.flat_map(|rest| rest.split("```").next().unwrap().lines());
        lines.filter(|line| !line.starts_with("{\"status\"")).map(str::to_owned).collect()
    };
    let (of_volumes, of_files) = (examples(volumes), examples(files));
    for line in &of_volumes {
        let value = serde_json::from_str(line).unwrap();
        text::parse_for_volume(&value).unwrap_or_else(|failure| panic!("{line}: {failure}"));
    }
    for line in &of_files {
        text::parse(line.as_bytes()).unwrap_or_else(|failure| panic!("{line}: {failure}"));
    }
    assert!(of_volumes.len() >= 3 && of_files.len() >= 12, "{of_volumes:?} {of_files:?}");
}

#[test]
fn the_c_structure_has_the_bytes_of_the_table() {
    if !program("cc") {
        return;
    }
    let page = page();
    let header = block(&page, "struct frit_isp {").trim_start_matches("c\n");
    let rows = page.split("| byte | bytes | field | meaning |").nth(1).unwrap();
    let mut checks = String::new();
    let mut end = 0;
    for row in rows.lines().skip(2).take_while(|row| row.starts_with('|')) {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let (at, len, field) =
            (cells[1].parse::<usize>().unwrap(), cells[2].parse::<usize>().unwrap(), cells[3]);
        assert_eq!(at, end, "a gap before {field}");
        end = at + len;
        checks += &format!("_Static_assert(offsetof(struct frit_isp, {field}) == {at}, \"{field}\");\n");
        checks +=
            &format!("_Static_assert(sizeof(((struct frit_isp *)0)->{field}) == {len}, \"{field}\");\n");
    }
    assert_eq!(end, binary::STRUCTURE_BYTES);
    let size = "_Static_assert(sizeof(struct frit_isp) == 4096, \"size\");\n";
    compile(&format!("#include <stddef.h>\n{header}\n{checks}{size}int main(void) {{ return 0; }}\n"));
}

#[test]
fn the_query_in_c_is_a_valid_instruction() {
    if !program("cc") {
        return;
    }
    let page = page();
    let header = block(&page, "struct frit_isp {").trim_start_matches("c\n");
    let opened = block(&page, "ioctl(fd_cmd, FRIT_ISP_BEGIN");
    let (_dir, path) = compile(&format!(
        "#include <fcntl.h>\n#include <stdio.h>\n{header}\nint main(void) {{{opened}\n\
         return FRIT_ISP_BEGIN != 0x40044675;\n}}\n"
    ));
    assert!(Program::new(path).output().unwrap().status.success(), "the number of the request");
    let query = block(&page, "write(fd_cmd, &srch");
    let query =
        query.replace("write(fd_cmd", "ssize_t w = write(1").replace("read(fd_cmd", "ssize_t r = read(0");
    let main =
        format!("#include <unistd.h>\n{header}\nint main(void) {{{query}\nreturn w < 0 || r < 0;\n}}\n");
    let (_dir, path) = compile(&main);
    let output = Program::new(path).stdin(std::process::Stdio::null()).output().unwrap();
    let instruction = binary::parse(&output.stdout).unwrap();
    assert_eq!(instruction.file, Target::name("log.txt").unwrap());
    let Command::Words(words) = instruction.command else { panic!("{instruction:?}") };
    assert_eq!(words.words, [&b"error"[..], b"warn", b"fatal", b"panic"]);
}
