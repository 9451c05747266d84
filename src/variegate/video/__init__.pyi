from .evaluation import KeyframeScore, evaluate_keyframes
from .picker import KeyframePicker, load_default
from .picks import PickedVideo, read_picks
from .picture import hue_histogram
from .reading import Frame, read_frames
from .summary import Candidate, Keyframe, VideoSummary

__all__ = [
    "Candidate",
    "Frame",
    "Keyframe",
    "KeyframePicker",
    "KeyframeScore",
    "PickedVideo",
    "VideoSummary",
    "evaluate_keyframes",
    "hue_histogram",
    "load_default",
    "read_frames",
    "read_picks",
]
