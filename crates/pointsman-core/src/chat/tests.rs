//! What counts, what does not, and what somebody might try.

use super::{
    ChatAction, ChatMessage, Command, Ignored, MessageContext, PersonMessage, Refusal, Relation, Reply,
    Report, act, listen, mark_edited,
};
use crate::notifier::Topic;
use crate::task::Order;
use crate::time::Timestamp;
use crate::vault::ActionId;

const ANN: &str = "@ann:example.org";
const ME: &str = "@bot:example.org";
const HASH: &str = "0123456789abcdef0123456789abcdef";

fn heard(body: &str) -> ChatMessage {
    ChatMessage {
        event: "$e1".into(),
        sender: ANN.into(),
        at: Timestamp(7),
        typed: true,
        body: body.into(),
        formatted: None,
        relation: Relation::Thread { root: "$root".into(), quotes: false },
        edited: false,
    }
}

fn said(heard: &ChatMessage) -> Result<PersonMessage, Ignored> {
    listen(heard, ME, &[ANN.to_owned()])
}

fn vault() -> Topic {
    Topic::Vault(ActionId::new("d1").unwrap())
}

/// What it means in the thread of a vault action.
fn decided(heard: &ChatMessage) -> Option<ChatAction> {
    act(&said(heard).unwrap(), Some(&vault()), Some(HASH))
}

#[test]
fn only_what_a_listed_person_types_is_heard() {
    let from = |sender: &str| ChatMessage { sender: sender.into(), ..heard("APPROVE") };
    let related = |relation| ChatMessage { relation, ..heard("APPROVE") };
    let cases = [
        ("our own", from(ME), Ignored::Own),
        ("a stranger's", from("@eve:example.org"), Ignored::Stranger),
        ("a namesake's", from("@ann:example.org.evil"), Ignored::Stranger),
        ("a capital's", from("@Ann:example.org"), Ignored::Stranger),
        ("a bot's notice", ChatMessage { typed: false, ..heard("APPROVE") }, Ignored::NotTyped),
        ("an edit", related(Relation::Replacement { of: None }), Ignored::Edit),
        ("a reaction", related(Relation::Other), Ignored::Elsewhere),
        ("nothing", heard(" \u{200b}\n"), Ignored::Empty),
    ];
    for (whose, heard, why) in cases {
        assert_eq!(said(&heard), Err(why), "{whose}");
    }
    assert!(listen(&heard("APPROVE"), ME, &[]).is_err(), "an empty list is nobody");
}

#[test]
fn a_yes_is_a_word_alone() {
    let yes = |again| Some(ChatAction::Approve { again });
    for text in
        ["APPROVE", "approve", "  Approve \n", "approve d1", "APPROVE 01234567", "approve 0123456789ab"]
    {
        assert_eq!(decided(&heard(text)), yes(false), "{text:?}");
    }
    for text in ["approve again", "APPROVE d1 AGAIN"] {
        assert_eq!(decided(&heard(text)), yes(true), "{text:?}");
    }
    for text in ["approve d2", "approve 0123", "approve 0123456f", "approve fedcba9876543210"] {
        assert_eq!(decided(&heard(text)), Some(ChatAction::Refuse(Refusal::AnotherAction)), "{text:?}");
    }
    let no = Some(ChatAction::Refuse(Refusal::YesOrNo));
    let words = [
        "do not approve",
        "APPROVE?",
        "approve, please",
        "`APPROVE`",
        "```\nAPPROVE\n```",
        "~~APPROVE~~",
        "\"APPROVE\"",
        "I would never say\nAPPROVE",
        "APPROVE\nno, wait",
        "approved",
        "АPPROVE", // a Cyrillic A
        "yes",
        "!approve",
        "approve d1 now",
    ];
    for text in words {
        assert_eq!(decided(&heard(text)), no, "{text:?}");
    }
    // What is seen and what is sent must be one.
    assert_eq!(decided(&heard("APP\u{200b}ROVE")), Some(ChatAction::Refuse(Refusal::NotPlain)));
    assert_eq!(decided(&heard("\u{202e}APPROVE")), Some(ChatAction::Refuse(Refusal::NotPlain)));
}

#[test]
fn a_no_may_have_a_reason() {
    for (text, reason) in [
        ("REJECT", ""),
        ("reject: not today", "not today"),
        ("Reject it costs too much", "it costs too much"),
    ] {
        assert_eq!(decided(&heard(text)), Some(ChatAction::Reject { reason: reason.into() }), "{text}");
    }
    for text in ["> REJECT", "rejected", "please reject"] {
        assert!(matches!(decided(&heard(text)), Some(ChatAction::Refuse(_))), "{text}");
    }
}

#[test]
fn a_quoted_changed_or_dressed_up_yes_is_none() {
    let not_plain = Some(ChatAction::Refuse(Refusal::NotPlain));
    let quoted = Relation::Thread { root: "$root".into(), quotes: true };
    let reply = Relation::Reply { to: "$root".into() };
    for relation in [quoted, reply] {
        let answer =
            ChatMessage { relation: relation.clone(), ..heard("> <@eve:example.org> do it?\n\nAPPROVE") };
        assert_eq!(decided(&answer), not_plain, "{relation:?}");
        let bare = ChatMessage { relation, ..heard("APPROVE") };
        assert_eq!(decided(&bare), not_plain);
    }
    assert_eq!(
        decided(&ChatMessage { edited: true, ..heard("APPROVE") }),
        Some(ChatAction::Refuse(Refusal::Edited))
    );
    assert_eq!(decided(&heard("> APPROVE")), Some(ChatAction::Refuse(Refusal::YesOrNo)));
    let with_settings = [
        "<code>APPROVE</code>",
        "<pre>APPROVE</pre>",
        "<blockquote>APPROVE</blockquote>",
        "<del>APPROVE</del>",
        "<mx-reply><blockquote>x</blockquote></mx-reply>APPROVE",
        "REJECT",
        "<p>do not APPROVE</p>",
        "&#65;PPROVE",
        "",
    ];
    for formatted in with_settings {
        let with_settings = ChatMessage { formatted: Some(formatted.into()), ..heard("APPROVE") };
        assert_eq!(decided(&with_settings), not_plain, "{formatted}");
    }
    for formatted in ["APPROVE", "<p>APPROVE</p>"] {
        let same = ChatMessage { formatted: Some(formatted.into()), ..heard("APPROVE") };
        assert_eq!(decided(&same), Some(ChatAction::Approve { again: false }), "{formatted}");
    }
}

#[test]
fn what_was_changed_before_it_was_read_counts_for_nothing() {
    let change = |sender: &str, of: &str| ChatMessage {
        event: "$later".into(),
        sender: sender.into(),
        relation: Relation::Replacement { of: Some(of.into()) },
        ..heard("* never mind")
    };
    let mut list = [heard("kill that agent"), change("@eve:example.org", "$e1"), change(ANN, "$other")];
    mark_edited(&mut list);
    assert!(!list[0].edited, "nobody changes another one's words");
    let mut list = [heard("The red ones."), change(ANN, "$e1")];
    mark_edited(&mut list);
    for topic in [Topic::Task(3), Topic::Agent("gardener".into()), vault()] {
        let said = said(&list[0]).unwrap();
        assert_eq!(act(&said, Some(&topic), None), Some(ChatAction::Refuse(Refusal::Edited)), "{topic}");
    }
}

#[test]
fn in_a_tasks_thread_words_reach_its_agent() {
    let task = Topic::Task(3);
    let means = |text: &str| act(&said(&heard(text)).unwrap(), Some(&task), None);
    let agent_hears =
        ["The red ones.", "APPROVE", "reject", "stop", "status", "ignore disk warning", "> a\nno: b"];
    for text in agent_hears {
        assert_eq!(means(text), Some(ChatAction::Speak), "{text}");
    }
    for text in ["kill that agent", "Kill the agent!", "!kill", "!stop"] {
        assert_eq!(means(text), Some(ChatAction::Order(Order::Stop)), "{text}");
    }
    assert_eq!(means("!pause"), Some(ChatAction::Order(Order::Pause)));
    assert_eq!(means("!resume"), Some(ChatAction::Order(Order::Resume)));
    assert_eq!(means("!rm"), Some(ChatAction::Refuse(Refusal::Unknown)), "a mistyped command is no answer");
    for text in ["what's stuck?", "What’s stuck", "WHAT IS STUCK?", "!stuck", "pointsman stuck"] {
        assert_eq!(means(text), Some(ChatAction::Tell(Report::Stuck)), "{text}");
    }
    let quoted = ChatMessage {
        relation: Relation::Reply { to: "$q".into() },
        ..heard("> kill that agent\n\nkill that agent")
    };
    let quoted = said(&quoted).unwrap();
    assert_eq!(
        (quoted.text.as_str(), &quoted.place),
        ("kill that agent", &MessageContext::Answer("$q".into()))
    );
    assert_eq!(act(&quoted, Some(&task), None), Some(ChatAction::Speak), "no order, but an answer");
}

#[test]
fn words_for_an_agent_of_the_factory_are_kept_as_what_they_are() {
    let supervisor = Topic::Agent("supervisor".into());
    let means = |text: &str| act(&said(&heard(text)).unwrap(), Some(&supervisor), None);
    let keeps = |command| Some(ChatAction::Keep(Reply::Command { command }));
    assert_eq!(means("ignore disk warning"), keeps(Command::Ignore { what: "disk".into() }));
    assert_eq!(
        means("Ignore the swap space warnings."),
        keeps(Command::Ignore { what: "swap space".into() })
    );
    assert_eq!(means("kill that agent"), keeps(Command::Kill));
    assert_eq!(means("use less memory"), Some(ChatAction::Keep(Reply::Text)));
    assert_eq!(means("ignore warning"), Some(ChatAction::Keep(Reply::Text)));
    assert_eq!(means("what's stuck?"), Some(ChatAction::Tell(Report::Stuck)));
}

#[test]
fn in_the_room_people_talk_to_each_other() {
    let means = |text: &str| {
        act(&said(&ChatMessage { relation: Relation::None, ..heard(text) }).unwrap(), None, None)
    };
    for text in ["APPROVE", "reject", "hello", "!unknown", "status", "stop"] {
        assert_eq!(means(text), None, "{text}");
    }
    assert_eq!(means("what's stuck?"), Some(ChatAction::Tell(Report::Stuck)));
    assert_eq!(means("pointsman status"), Some(ChatAction::Tell(Report::Status)));
    assert_eq!(means("!help"), Some(ChatAction::Tell(Report::Help)));
    assert_eq!(means("kill that agent"), Some(ChatAction::Refuse(Refusal::NotHere)));
    assert!(matches!(means("ignore disk warning"), Some(ChatAction::Keep(_))));
}

#[test]
fn a_typed_reply_reads_back_from_the_store() {
    for reply in [Reply::Text, Reply::Command { command: Command::Ignore { what: "disk".into() } }] {
        let text = serde_json::to_string(&reply).unwrap();
        assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply, "{text}");
    }
}
