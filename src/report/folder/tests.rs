use std::slice::from_ref;
use std::time::Duration;

use super::*;
use crate::report::document;
use crate::verdict::{fixture, judge};

fn any_document() -> Document {
    let (plan, outcome) = (fixture::plan(), fixture::outcome(fixture::good_run()));
    document(from_ref(&plan), &outcome, &judge(from_ref(&plan), &outcome))
}

fn started() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_796_028_012_345)
}

#[test]
fn names_become_file_names() {
    let names = ["ten-clients", "a b/../c", "../..", "", "äö.x_1"].map(file_name);
    assert_eq!(names, ["ten-clients", "a-b-..-c", "run", "run", "x_1"]);
}

#[test]
fn every_result_has_a_folder_of_its_own() {
    let parent = tempfile::tempdir().expect("a folder");
    let below = parent.path().join("deep/down");
    let folders = [(); 3].map(|()| ResultFolder::create(&below, "ten clients", started()).expect("created"));
    let names = folders.map(|folder| folder.path().file_name().expect("named").to_string_lossy().into_owned());
    let stem = "ten-clients-20261130T084012Z";
    assert_eq!(names, [stem.to_owned(), format!("{stem}-2"), format!("{stem}-3")]);
}

#[test]
fn a_result_is_written_whole_and_readable() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = ResultFolder::create(parent.path(), "x", started()).expect("created");
    let document = any_document();
    folder.write_scenario("name = \"x\"\n").expect("written");
    folder.write_result(&document).expect("written");
    folder.write_result(&document).expect("replaced");
    assert_eq!(folder.files(), ["result.json", "scenario.toml"]);
    let text = fs::read_to_string(folder.file("result.json")).expect("there");
    assert_eq!(serde_json::from_str::<Document>(&text).expect("valid"), document);
}

#[test]
fn a_parent_that_is_a_file_is_an_error_with_its_path() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let error = ResultFolder::create(file.path(), "x", started()).expect_err("not a folder");
    assert!(error.to_string().contains(&file.path().display().to_string()), "{error}");
    let below = file.path().join("x.json");
    assert!(matches!(JsonOutput::open(&below.to_string_lossy()), Err(FolderError::Json { .. })));
}

#[test]
fn json_goes_to_a_file_or_to_standard_output() {
    let parent = tempfile::tempdir().expect("a folder");
    let path = parent.path().join("x.json");
    let output = JsonOutput::open(&path.to_string_lossy()).expect("opened");
    assert!(!path.exists(), "nothing is there until there is a result");
    output.write(&any_document(), &mut io::sink()).expect("written");
    let mut printed = Vec::new();
    JsonOutput::open("-").expect("opened").write(&any_document(), &mut printed).expect("written");
    assert_eq!(fs::read(&path).expect("there"), printed);
}

#[test]
fn what_is_no_plain_file_stays_what_it_is() {
    let output = JsonOutput::open("/dev/null").expect("opened");
    output.write(&any_document(), &mut io::sink()).expect("written");
    assert!(!fs::metadata("/dev/null").expect("there").is_file());
    assert!(matches!(JsonOutput::open("/"), Err(FolderError::Json { .. })));
}

#[test]
fn json_goes_through_links_and_keeps_what_is_forbidden() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("target.json", at("link.json")).expect("a link");
    let json = JsonOutput::open(&at("link.json").to_string_lossy()).expect("opened");
    json.write(&any_document(), &mut Vec::new()).expect("written");
    assert!(at("link.json").is_symlink() && at("target.json").is_file());
    fs::set_permissions(at("target.json"), Permissions::from_mode(0o640)).expect("allowed");
    JsonOutput::open(&at("target.json").to_string_lossy())
        .expect("opened")
        .write(&any_document(), &mut Vec::new())
        .expect("written");
    let mode = |name: &str| fs::metadata(at(name)).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode("target.json"), 0o640);
    fs::set_permissions(at("target.json"), Permissions::from_mode(0o400)).expect("allowed");
    assert!(JsonOutput::open(&at("target.json").to_string_lossy()).is_err());
    assert!(JsonOutput::open("").is_err());
}
