"""Notes of one person, in memory and in a file of JSON lines."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Note:
    title: str
    text: str = ""
    tags: list[str] = field(default_factory=list)


class NoteStore:
    """All notes, newest last."""

    def __init__(self, path: Path):
        self.path = path
        self.notes: list[Note] = []

    def load(self) -> None:
        """Reads the file. One that is not there is an empty one."""
        if self.path.exists():
            lines = self.path.read_text().splitlines()
            self.notes = [Note(**json.loads(line)) for line in lines if line]

    def add_note(self, note: Note) -> None:
        if not note.title:
            raise ValueError("a note needs a title")
        self.notes.append(note)

    def save(self) -> None:
        lines = [json.dumps(asdict(note)) for note in self.notes]
        self.path.write_text("\n".join(lines) + "\n")
