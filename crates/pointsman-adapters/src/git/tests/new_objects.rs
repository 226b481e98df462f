use super::World;
use crate::git::new_objects::{NewObject, ObjectKind, for_each_content, new_objects};

fn contents(world: &World, objects: &[NewObject]) -> Vec<(ObjectKind, String, String)> {
    let mut read = Vec::new();
    let all: Vec<&NewObject> = objects.iter().collect();
    for_each_content(&world.mirror, &all, |object, content| {
        assert_eq!(object.size, content.len() as u64, "{object:?}");
        read.push((object.kind, object.path.clone(), String::from_utf8_lossy(content).into_owned()));
    })
    .unwrap();
    read
}

#[test]
fn everything_that_a_push_sends_is_listed_and_nothing_that_main_has() {
    let world = World::new();
    let first = world.commit_on("task", &world.base, &[("odd name", "gone tomorrow"), ("b", "kept")]);
    std::fs::remove_file(world.person.join("odd name")).unwrap();
    let head = world.commit_on("task", &first, &[("c", "new")]);
    let main = world.commit_on("main", &world.base, &[("e", "main's own")]);
    let objects = new_objects(&world.mirror, &main, &head).unwrap();
    let read = contents(&world, &objects);
    let files: Vec<(&str, &str)> = read
        .iter()
        .filter(|(kind, ..)| *kind == ObjectKind::File)
        .map(|(_, path, text)| (path.as_str(), text.as_str()))
        .collect();
    for expected in [("odd name", "gone tomorrow"), ("b", "kept"), ("c", "new")] {
        assert!(files.contains(&expected), "{files:?}");
    }
    assert_eq!(files.len(), 3, "{files:?}");
    let commits: Vec<&String> =
        read.iter().filter(|(kind, ..)| *kind == ObjectKind::Commit).map(|(_, _, text)| text).collect();
    assert_eq!(commits.len(), 2);
    assert!(commits.iter().all(|text| text.contains("Ann Author")), "{commits:?}");
    let names = read.iter().filter(|(kind, ..)| *kind == ObjectKind::Tree);
    assert!(names.into_iter().any(|(_, _, text)| text.contains("odd name")), "{read:?}");
    assert_eq!(new_objects(&world.mirror, &head, &head).unwrap(), []);
}

#[test]
fn large_branches_are_read_in_pieces() {
    let world = World::new();
    let large = "x".repeat(5 << 20);
    let files = [("a", format!("{large}a")), ("b", format!("{large}b")), ("c", format!("{large}c"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let head = world.commit_on("task", &world.base, &files);
    let objects = new_objects(&world.mirror, &world.base, &head).unwrap();
    let read = contents(&world, &objects);
    let ends: Vec<char> = read
        .iter()
        .filter(|(kind, ..)| *kind == ObjectKind::File)
        .filter_map(|(_, _, text)| text.chars().last())
        .collect();
    assert_eq!(ends, ['a', 'b', 'c']);
}
