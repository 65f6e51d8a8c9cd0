"""Finds notes by words and tags."""

from notes.store import Note, NoteStore


def matches(note: Note, words: list[str]) -> bool:
    """Every word is somewhere in the note."""
    text = f"{note.title} {note.text}".lower()
    return all(word.lower() in text for word in words)


def search(store: NoteStore, query: str) -> list[Note]:
    """`tag:work plan` finds notes with the tag `work` and the word `plan`, newest first."""
    parts = query.split()
    tags = {part[4:] for part in parts if part.startswith("tag:")}
    words = [part for part in parts if not part.startswith("tag:")]
    found = [note for note in store.notes if tags <= set(note.tags) and matches(note, words)]
    return list(reversed(found))
